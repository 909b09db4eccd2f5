// Another program at the same tables: the one that the documentation shows.

#include "documented_program.h"
#include "each_server.h"
#include "support/account.h"
#include "transactions/slot.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <span>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace account;

class ForeignProgram : public EachServer {
  protected:
    DocumentedProgram::Ran run(const std::string& stream) const { return program_.run(*server_, stream); }

    const DocumentedProgram program_{VARVE_DYNAMODB_PAGE};  // reads a stream and appends a deposit of 7.00 to it
};

INSTANTIATE_TEST_SUITE_P(Each, ForeignProgram, each_kind(), name_of_kind);

TEST_P(ForeignProgram, reads_and_appends_events_and_varve_goes_on_after_them) {
    Application bank{varve::open(server_->url("bank"))};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    const auto first = run("account-alice");
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
    const auto second = run("account-alice");
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
        ASSERT_TRUE(std::holds_alternative<store::Applied>(bank.store().write({&write, 1}).front()));
    };
    for (const transactions::Epoch epoch : {0, 1}) fence("account-alice", 2, epoch);
    fence("account-carol", 1, 0);
    for (const char* id : {"alice", "carol"}) {
        const auto ran = run(std::string{"account-"} + id);
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
    ASSERT_TRUE(std::holds_alternative<store::Applied>(bank.store().write({&prepare, 1}).front()));
    const auto waits = run("account-alice");
    EXPECT_NE(waits.status, 0);
    EXPECT_NE(waits.said.find("try again later"), std::string::npos) << waits.said;

    EXPECT_FALSE(bank.execute<Account>("alice", Withdraw{1000})) << "a command that comes by, and writes nothing";
    const auto goes_on = run("account-alice");
    EXPECT_EQ(goes_on.status, 0) << goes_on.said;
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 800);
}

TEST_P(ForeignProgram, begins_a_stream_that_varve_continues) {
    Application bank{varve::open(server_->url("bank"))};
    const auto ran = run("account-carol");
    ASSERT_EQ(ran.status, 0) << ran.said;
    EXPECT_TRUE(bank.execute<Account>("carol", Withdraw{700}));
    EXPECT_EQ(bank.load<Account>("carol").version, 2);
}

TEST_P(ForeignProgram, reads_the_same_events_in_the_same_order_as_who_follows_them) {
    for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
        Application bank{varve::open(server_->url("bank")), {.transactions = {.strategy = strategy}}};
        for (int i = 0; i < 10; ++i) {
            ASSERT_TRUE(bank.transact([&](Transaction& tx) {
                tx.execute<Account>("alice", Deposit{10 + i});
                tx.execute<Account>("alice", Withdraw{1});
                tx.execute<Account>("bob" + std::to_string(i % 3), Deposit{1});
            }));
            ASSERT_TRUE(bank.execute<Account>("carol", Deposit{1}));
        }
    }
    std::string followed;
    std::string followed_later;
    constexpr std::uint64_t later = 17;
    Application bank{varve::open(server_->url("bank"))};
    bank.subscribe("foreign", [&](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            const std::string line = std::to_string(event.position) + " " + event.stream + " " +
                                     std::to_string(event.version) + R"( {"type":")" + event.event.type +
                                     R"(","data":)" + event.event.data + "}\n";
            followed += line;
            if (event.position > later) followed_later += line;
        }
    });
    ASSERT_TRUE(bank.wait_for("foreign", {}, std::chrono::minutes{4}));
    bank.unfollow("foreign");
    const DocumentedProgram reader{VARVE_FEED_PAGE};
    const DocumentedProgram::Ran all = reader.run(*server_, "0");
    EXPECT_EQ(all.status, 0);
    EXPECT_EQ(all.said, followed);
    EXPECT_EQ(std::ranges::count(followed, '\n'), 80);
    EXPECT_EQ(reader.run(*server_, std::to_string(later)).said, followed_later);
}

}  // namespace
}  // namespace varve::dynamodb
