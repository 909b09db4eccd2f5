// Another program at the same file: the shell of SQLite, with what the documentation shows.

#include "scratch_file.h"
#include "support/account.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace varve::sqlite {
namespace {

using namespace account;

struct Ran {
    std::string said;
    int status;
};

Ran run(const std::string& command) {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("no shell");
    Ran ran{};
    std::array<char, 4096> bytes{};
    while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe))
        ran.said.append(bytes.data(), count);
    ran.status = pclose(pipe);
    return ran;
}

TEST(ForeignProgram, reads_the_same_events_in_the_same_order_as_who_follows_them) {
    if (run("command -v sqlite3").status != 0) GTEST_SKIP() << "the shell sqlite3 is not installed";
    const ScratchFile file;
    Options options = file.options();
    options.synchronous = Synchronous::normal;
    const auto store = sqlite::open(options);
    {
        std::vector<std::jthread> writers;
        for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
            writers.emplace_back([&, strategy] {
                Application bank{
                    store, {.retry = {.time_max = std::chrono::minutes{4}}, .transactions = {.strategy = strategy}}};
                for (int i = 0; i < 50; ++i) {
                    bank.transact([&](Transaction& tx) {
                            tx.execute<Account>("alice", Deposit{10 + i});
                            tx.execute<Account>("alice", Withdraw{1});
                            tx.execute<Account>("bob" + std::to_string(i % 3), Deposit{1});
                        })
                        .value();
                }
            });
        }
    }
    std::string followed;
    Application bank{store};
    bank.subscribe("foreign", [&](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            followed += std::to_string(event.position) + "|" + event.stream + "|" + std::to_string(event.version) +
                        R"(|{"type":")" + event.event.type + R"(","data":)" + event.event.data + "}\n";
        }
    });
    ASSERT_TRUE(bank.wait_for("foreign", {}, std::chrono::minutes{4}));
    bank.unfollow("foreign");
    const Ran ran = run("sqlite3 '" + file.path() +
                        "' \"SELECT position, aggregateId, version, event.value FROM events,"
                        " json_each(item ->> 'events') AS event WHERE item ->> 'state' = 'committed'"
                        " AND aggregateId NOT LIKE '$%' ORDER BY position, event.key\"");
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.said, followed);
    EXPECT_EQ(std::ranges::count(followed, '\n'), 300);
}

}  // namespace
}  // namespace varve::sqlite
