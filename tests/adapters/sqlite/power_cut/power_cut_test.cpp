#include "disk.h"
#include "scene.h"
#include "support/temporary_folder.h"

#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// A worker runs once, with all that it asks of the file system recorded. Then the power is cut again and again, at
// random moments of that record: the disk is left as it could be, and the store is opened on it.

namespace varve::power_cut {
namespace {

/// The disk is a simulated one, so that the files may lie in memory.
std::filesystem::path fast_directory() {
    return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
}

struct Acknowledged {
    std::string from;
    std::string to;
    std::string transfer;
};

class Trace {
  public:
    /// Runs the worker.
    explicit Trace(const std::string& strategy) {
        const TemporaryFolder folder{"power-cut", fast_directory()};
        const std::string store = folder.path() / "store";
        const std::string trace = folder.path() / "trace";
        std::filesystem::create_directory(store);
        // The loader takes a space for the end of a path.
        const std::string recorder = folder.path() / "recorder.so";
        std::filesystem::create_symlink(VARVE_POWER_CUT_RECORDER, recorder);
        const pid_t worker = fork();
        if (worker == 0) {
            setenv("LD_PRELOAD", recorder.c_str(), 1);
            setenv(watched_variable, store.c_str(), 1);
            setenv(trace_variable, trace.c_str(), 1);
            execl(VARVE_POWER_CUT_WORKER, VARVE_POWER_CUT_WORKER, store.c_str(), strategy.c_str(), nullptr);
            _exit(127);
        }
        int status = -1;
        waitpid(worker, &status, 0);
        if (status != 0) throw std::runtime_error("the worker failed");
        std::ifstream in{trace, std::ios::binary};
        std::ostringstream out;
        out << in.rdbuf();
        content_ = std::move(out).str();
        for (std::size_t at = 0; at + sizeof(Request) <= content_.size();) {
            Request request{};
            std::memcpy(&request, content_.data() + at, sizeof request);
            at += sizeof request;
            requests_.push_back({request, std::as_bytes(std::span{content_.data() + at, request.bytes})});
            at += request.bytes;
        }
    }

    struct One {
        Request request;
        std::span<const std::byte> content;
    };
    const std::vector<One>& requests() const { return requests_; }

  private:
    std::string content_;
    std::vector<One> requests_;
};

struct Found {
    int cuts = 0;
    int acknowledged = 0;
    int lost = 0;       // acknowledged transfers that are not there, or a store that cannot be opened
    int halves = 0;     // transfers on one side only
    std::string first;  // what was wrong first
};

/// What is wrong after a power cut that left `directory`.
void judge(const std::filesystem::path& directory, Found& found) {
    std::vector<Acknowledged> all;
    std::ifstream in{directory / acknowledgements};
    for (Acknowledged one; in >> one.from >> one.to >> one.transfer;) all.push_back(one);
    found.acknowledged += static_cast<int>(all.size());
    ++found.cuts;
    const auto wrong = [&](int& count, const std::string& what) {
        ++count;
        if (found.first.empty()) found.first = what;
    };
    try {
        Application bank{open("sqlite:" + (directory / "store.db").string() + "?synchronous=normal"), {.sweep = false}};
        std::map<std::string, Account> accounts;
        std::map<std::string, int> sides;
        std::int64_t sum = 0;
        for (int i = 0; i < power_cut::accounts; ++i) {
            Account account = bank.load<Account>(std::to_string(i)).state;
            sum += account.balance;
            for (const std::string& transfer : account.transfers) ++sides[transfer];
            accounts[std::to_string(i)] = std::move(account);
        }
        for (const auto& [from, to, transfer] : all) {
            if (!accounts[from].knows(transfer) || !accounts[to].knows(transfer)) wrong(found.lost, transfer + " lost");
        }
        for (const auto& [transfer, count] : sides) {
            if (count != 2) wrong(found.halves, transfer + " is there " + std::to_string(count) + " times");
        }
        if (sum != 0) wrong(found.halves, "the balances add up to " + std::to_string(sum));
        // It goes on.
        (void)bank.execute<Account>("0", Credit{"after", 0});
    } catch (const Error& error) {
        wrong(found.lost, error.what());
    }
}

Found cut_power(const Trace& trace, int cuts, bool flushes, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::multiset<std::size_t> moments;
    for (int i = 0; i < cuts; ++i) moments.insert(random() % (trace.requests().size() + 1));
    Disk disk{flushes};
    Found found;
    std::size_t done = 0;
    for (const std::size_t moment : moments) {
        for (; done < moment; ++done) disk.apply(trace.requests()[done].request, trace.requests()[done].content);
        const TemporaryFolder folder{"power-cut", fast_directory()};
        disk.cut(folder.path(), random);
        judge(folder.path(), found);
    }
    return found;
}

std::uint64_t seed() {
    const char* const given = std::getenv("VARVE_SEED");
    const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::cout << "replay: VARVE_SEED=" << seed << '\n';
    return seed;
}

class PowerCuts : public ::testing::TestWithParam<const char*> {};

TEST_P(PowerCuts, lose_nothing_that_was_acknowledged_and_leave_no_halves) {
    const Trace trace{GetParam()};
    const Found found = cut_power(trace, 160, true, seed());
    std::cout << GetParam() << ": " << trace.requests().size() << " requests, " << found.cuts << " cuts, "
              << found.acknowledged << " acknowledged transfers looked for, " << found.lost << " lost, " << found.halves
              << " halves\n";
    EXPECT_EQ(found.lost, 0) << found.first;
    EXPECT_EQ(found.halves, 0) << found.first;
    EXPECT_GT(found.acknowledged, 1000) << "too little was at stake";
}

// Whoever cannot see a loss proves nothing.
TEST_P(PowerCuts, lose_a_lot_on_a_disk_that_does_not_flush) {
    EXPECT_GT(cut_power(Trace{GetParam()}, 10, false, seed()).lost, 0);
}

INSTANTIATE_TEST_SUITE_P(By, PowerCuts, ::testing::Values("native", "protocol"),
                         [](const auto& info) { return std::string{info.param}; });

}  // namespace
}  // namespace varve::power_cut
