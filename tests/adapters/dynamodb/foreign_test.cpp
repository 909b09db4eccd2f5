// Another program at the same tables: the one that the documentation shows.

#include "each_server.h"
#include "support/account.h"
#include "support/temporary_folder.h"

#include <varve/store/open.h>
#include <varve/transactions/slot.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace account;

/// The program in JavaScript that the page shows.
std::string documented_program() {
    std::ifstream file{VARVE_DYNAMODB_PAGE};
    std::stringstream page;
    page << file.rdbuf();
    const std::string text = page.str();
    constexpr std::string_view begin = "```js\n";
    const std::size_t from = text.find(begin);
    if (from == std::string::npos) throw std::runtime_error("no program in " VARVE_DYNAMODB_PAGE);
    return text.substr(from + begin.size(), text.find("```\n", from + begin.size()) - from - begin.size());
}

class ForeignProgram : public EachServer {
  protected:
    void SetUp() override {
        EachServer::SetUp();
        if (!server_) return;
        std::ofstream{program_} << documented_program();
    }

    struct Ran {
        std::string said;
        int status;
    };
    Ran run(const std::string& stream) const {
        const std::string command = "NODE_NO_WARNINGS=1 NODE_PATH='" VARVE_DYNAMODB_SERVERS
                                    "/node_modules' AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=local"
                                    " AWS_SECRET_ACCESS_KEY=local node '" +
                                    program_.string() + "' http://" + server_->address() + " '" + stream + "' 2>&1";
        std::FILE* pipe = popen(command.c_str(), "r");
        if (pipe == nullptr) throw std::runtime_error("no shell");
        Ran ran;
        std::array<char, 4096> bytes{};
        while (const std::size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe))
            ran.said.append(bytes.data(), count);
        ran.status = pclose(pipe);
        return ran;
    }

    const TemporaryFolder folder_{"foreign"};
    const std::filesystem::path program_ = folder_.path() / "program.js";
};

INSTANTIATE_TEST_SUITE_P(Each, ForeignProgram, each_kind(), name_of_kind);

TEST_P(ForeignProgram, reads_and_appends_events_and_varve_goes_on_after_them) {
    Application bank{varve::open(server_->url("bank"))};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    const Ran first = run("account-alice");
    ASSERT_EQ(first.status, 0) << first.said;
    EXPECT_EQ(first.said, "1 [{\"type\":\"Deposited\",\"data\":{\"cents\":100}}]\n");

    // The one that remembers alice as she was, and one that has never seen her.
    Application other{varve::open(server_->url("bank"))};
    for (Application* one : {&bank, &other}) {
        const auto alice = one->load<Account>("alice");
        EXPECT_EQ(alice.state.balance, 800);
        EXPECT_EQ(alice.version, 2);
    }
    const auto moved = bank.transact([](Transaction& tx) {
        tx.execute<Account>("alice", Withdraw{750});
        tx.execute<Account>("bob", Deposit{750});
    });
    ASSERT_TRUE(moved);
    const Ran second = run("account-alice");
    EXPECT_EQ(second.status, 0);
    EXPECT_EQ(second.said,
              "1 [{\"type\":\"Deposited\",\"data\":{\"cents\":100}}]\n"
              "2 [{\"type\":\"Deposited\",\"data\":{\"cents\":700}}]\n"
              "3 [{\"type\":\"Withdrawn\",\"data\":{\"cents\":750}}]\n");
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 750);
    EXPECT_EQ(bank.history<Account>("alice").events.size(), 4U);
}

TEST_P(ForeignProgram, writes_over_what_aborted_transactions_left_void) {
    Application bank{varve::open(server_->url("bank"))};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    const auto fence = [&](const std::string& stream, Version version, transactions::Epoch epoch) {
        const store::Write write = transactions::fence_free_slot(transactions::slot_key(stream, version), epoch);
        ASSERT_TRUE(std::holds_alternative<store::Applied>(bank.coordinator().store().write({&write, 1}).front()));
    };
    for (const transactions::Epoch epoch : {0, 1}) fence("account-alice", 2, epoch);
    fence("account-carol", 1, 0);
    for (const char* id : {"alice", "carol"}) {
        const Ran ran = run(std::string{"account-"} + id);
        ASSERT_EQ(ran.status, 0) << ran.said;
    }
    EXPECT_EQ(run("account-alice").said,
              "1 [{\"type\":\"Deposited\",\"data\":{\"cents\":100}}]\n"
              "2 [{\"type\":\"Deposited\",\"data\":{\"cents\":700}}]\n");
    EXPECT_EQ(bank.load<Account>("carol").version, 1);
    EXPECT_TRUE(bank.execute<Account>("alice", Withdraw{1500}));
    EXPECT_EQ(bank.load<Account>("alice").version, 4);
}

TEST_P(ForeignProgram, leaves_alone_what_is_pending_until_varve_has_settled_it) {
    Application bank{varve::open(server_->url("bank")), {.sweep = false}};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    const transactions::Claim dead{
        .tx = "dead", .primary = transactions::slot_key("account-bob", 1), .lease = {}, .priority = {}};
    const store::Write prepare =
        transactions::prepare_slot(transactions::slot_key("account-alice", 2), 0, dead, {{"events", "[]"}});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(bank.coordinator().store().write({&prepare, 1}).front()));
    const Ran waits = run("account-alice");
    EXPECT_NE(waits.status, 0);
    EXPECT_NE(waits.said.find("try again later"), std::string::npos) << waits.said;

    EXPECT_FALSE(bank.execute<Account>("alice", Withdraw{1000})) << "a command that comes by, and writes nothing";
    const Ran goes_on = run("account-alice");
    EXPECT_EQ(goes_on.status, 0) << goes_on.said;
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 800);
}

TEST_P(ForeignProgram, begins_a_stream_that_varve_continues) {
    Application bank{varve::open(server_->url("bank"))};
    const Ran ran = run("account-carol");
    ASSERT_EQ(ran.status, 0) << ran.said;
    EXPECT_TRUE(bank.execute<Account>("carol", Withdraw{700}));
    EXPECT_EQ(bank.load<Account>("carol").version, 2);
}

}  // namespace
}  // namespace varve::dynamodb
