#include "locks/stored_lock.h"
#include "support/account.h"
#include "support/held_write.h"
#include "support/hooked_store.h"
#include "transactions/slot.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <thread>

#include <gtest/gtest.h>

/// How a command that keeps losing climbs from rung to rung, as its receipt tells.
namespace varve {
namespace {

using namespace std::chrono_literals;
using namespace account;

struct Rungs : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Locks looker{store, {.heartbeat_thread = false}, {.clock = clock}};

    Application make(const Escalation& escalation = {}, const RetryPolicy& retry = {}) {
        return Application{store,
                           options({.retry = retry, .escalation = escalation, .transactions = {.lease = 100ms}})};
    }
    /// A deposit of `patient`'s in whose way `hot` is, `times` times.
    Outcome lose(
        Application& patient, unsigned times, const std::function<void(unsigned)>& look = [](unsigned) {}) {
        Application hot = make({}, RetryPolicy::once());
        unsigned runs = 0;
        return patient.transact([&](Transaction& tx) {
            tx.execute<Account>("x", Deposit{1});
            look(++runs);
            if (runs <= times) static_cast<void>(hot.execute<Account>("x", Deposit{100}));
        });
    }
    bool has_its_turn() { return !looker.inspect("$turn-account-x").holder.owner.empty(); }
};

TEST_F(Rungs, a_command_in_nobodys_way_commits_at_once) {
    Application bank = make();
    EXPECT_EQ(bank.execute<Account>("x", Deposit{1})->rung, Rung::at_once);
    EXPECT_EQ(lose(bank, 0)->rung, Rung::at_once);
}

TEST_F(Rungs, who_was_refused_tries_again) {
    Application bank = make();
    const Outcome outcome = lose(bank, 3, [&](unsigned) { EXPECT_FALSE(has_its_turn()); });
    EXPECT_EQ(outcome->rung, Rung::retried);
    EXPECT_EQ(outcome->attempts, 4u);
}

TEST_F(Rungs, the_time_in_a_line_of_its_own_process_is_no_reason_to_climb) {
    const auto hooked = std::make_shared<HookedStore>(store);
    Application bank{hooked,
                     {.escalation = {.reserve_after_time = 400ms}, .sweep = false, .runtime = {.clock = clock}}};
    Application hot = make();
    HeldWrite held{*hooked};
    std::jthread stuck{
        [&] { EXPECT_TRUE(bank.transact([](auto& tx) { tx.template execute<Account>("x", Deposit{1}); })); }};
    held.wait();
    unsigned runs = 0;
    const Time began = clock.now();
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        tx.execute<Account>("x", Deposit{1});
        if (++runs == 2) {
            EXPECT_TRUE(hot.execute<Account>("x", Deposit{100}));
        }
    });
    EXPECT_GE(clock.now() - began, 400ms);
    EXPECT_EQ(outcome->rung, Rung::retried);
    EXPECT_EQ(runs, 3u);
    held.release();
}

TEST_F(Rungs, who_meets_a_transaction_that_is_running_waits_for_it) {
    Application bank = make();
    const transactions::Claim older{.tx = "older",
                                    .primary = transactions::slot_key("account-a", 1),
                                    .primary_epoch = 0,
                                    .lease = clock.now() + 50ms,
                                    .priority = clock.now() - 1s};
    const store::Write prepare =
        transactions::prepare_slot(transactions::slot_key("account-x", 1), 0, older, {{"time", 0}, {"events", "[]"}});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&prepare, 1}).front()));
    const Outcome outcome = bank.execute<Account>("x", Deposit{1});
    EXPECT_EQ(outcome->rung, Rung::waited);
    EXPECT_EQ(outcome->path, transactions::Path::single);
}

TEST_F(Rungs, who_keeps_losing_takes_its_aggregates_lock_and_gives_it_back) {
    Application bank = make();
    const unsigned after = Escalation{}.queue_after;
    const Outcome outcome = lose(bank, after + 1, [&](unsigned run) { EXPECT_EQ(has_its_turn(), run > after) << run; });
    EXPECT_EQ(outcome->rung, Rung::queued);
    EXPECT_EQ(outcome->attempts, after + 2);
    EXPECT_NE(outcome->path, transactions::Path::reserved);
    EXPECT_FALSE(has_its_turn());
    EXPECT_TRUE(looker.inspect("$turn-account-x").queue.empty());
}

TEST_F(Rungs, who_does_not_get_its_turn_in_time_reserves_at_once) {
    Application bank = make({.queue_time_max = 5s});
    const Lock others = looker.acquire("$turn-account-x");
    const Time began = clock.now();
    const Outcome outcome = lose(bank, Escalation{}.queue_after);
    EXPECT_EQ(outcome->rung, Rung::reserved);
    EXPECT_EQ(outcome->path, transactions::Path::reserved);
    EXPECT_EQ(outcome->attempts, Escalation{}.queue_after + 1);
    EXPECT_GE(clock.now() - began, 5s);
    EXPECT_EQ(looker.inspect("$turn-account-x").queue.size(), 1u) << "who gave up left its place behind";
}

TEST_F(Rungs, who_loses_with_the_lock_in_its_hands_reserves_in_the_end) {
    Application bank = make({.queue_after = 1, .reserve_after = 2});
    const Outcome outcome = lose(bank, 2);
    EXPECT_EQ(outcome->rung, Rung::reserved);
    EXPECT_EQ(outcome->attempts, 3u);
    EXPECT_FALSE(has_its_turn());
}

TEST_F(Rungs, without_time_to_queue_there_are_no_locks) {
    Application bank = make({.queue_time_max = 0s, .reserve_after = 6});
    const Outcome outcome = lose(bank, 6);
    EXPECT_EQ(outcome->rung, Rung::reserved);
    EXPECT_EQ(outcome->attempts, 7u);
    EXPECT_TRUE(store->scan({.table = locks::locks_table().name}).records.empty());
}

TEST_F(Rungs, have_names) {
    EXPECT_STREQ(to_string(Rung::at_once), "at_once");
    EXPECT_STREQ(to_string(Rung::reserved), "reserved");
}

}  // namespace
}  // namespace varve
