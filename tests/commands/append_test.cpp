#include "support/account.h"

#include <varve/events/event_store.h>
#include <varve/testing/counting_store.h>

#include <gtest/gtest.h>

// Events that were decided elsewhere.
namespace varve {
namespace {

using namespace account;

struct Append : ::testing::Test {
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(open("memory:"));
    Application bank{store, {.sweep = false}};
};

TEST_F(Append, puts_all_events_into_one_slot_and_runs_inline_projections) {
    bank.project<Account>(ProjectBalance{});
    const Outcome outcome =
        bank.append<Account>("alice", {Opened{"Alice"}, Deposited{30}, Withdrawn{10}}, {.expected_version = 0});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->written, (std::vector<Receipt::Written>{{"account-alice", 1}}));
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 20);
    EXPECT_EQ(bank.load<Account>("alice").state.owner, "Alice");
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{20});
}

TEST_F(Append, of_a_version_that_is_not_there_is_rejected) {
    ASSERT_TRUE(bank.append<Account>("alice", {Deposited{30}}));
    EXPECT_EQ(bank.append<Account>("alice", {Deposited{30}}, {.expected_version = 0}).error().code, "wrong_version");
    EXPECT_THROW(static_cast<void>(bank.append<Account>("alice", {})), InvalidError);
}

TEST_F(Append, under_a_command_id_is_done_once_and_stands_for_its_events) {
    const CommandOptions once{.command_id = "import/1"};
    ASSERT_TRUE(bank.append<Account>("alice", {Deposited{30}}, once));
    EXPECT_TRUE(bank.append<Account>("alice", {Deposited{30}}, once)->repeated);
    EXPECT_EQ(bank.append<Account>("alice", {Deposited{31}}, once).error().code, "command_id_reused");
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 30);
}

TEST_F(Append, of_many_aggregates_in_one_transaction_is_one_request) {
    bank.project<Account>(ProjectBalance{});
    static_cast<void>(bank.rows<Balance>().get("0"));
    store->reset();
    const Outcome outcome = bank.transact(
        [](Transaction& tx) {
            for (int id = 0; id < 30; ++id)  // the thread sanitizer knows 64 locks of a thread, one for each item
                tx.append<Account>(std::to_string(id), std::vector<Account::Event>(20, Deposited{1}));
        },
        {.command_id = "import/chunk-1"});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->path, transactions::Path::native);
    EXPECT_EQ(outcome->written.size(), 30u);
    EXPECT_EQ(bank.rows<Balance>().get("29"), Balance{20});
}

TEST_F(Append, below_the_application_is_refused_where_projections_would_miss_it) {
    const std::vector<EventData> events{encode_event(Deposited{1})};
    EXPECT_TRUE(bank.events().append("account-alice", events, Expected::none()));
    Application projecting{open("memory:"), {.sweep = false}};
    projecting.project<Account>(ProjectBalance{});
    try {
        static_cast<void>(projecting.events().append("account-alice", events, Expected::none()));
        FAIL() << "the projection has missed an event";
    } catch (const InvalidError& error) {
        EXPECT_NE(std::string{error.what()}.find("Application::append"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(projecting.events().append("accounts-alice", events, Expected::none()));
}

}  // namespace
}  // namespace varve
