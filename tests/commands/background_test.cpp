#include "support/account.h"
#include "support/hooked_store.h"
#include "support/told_clock.h"

#include <varve/locks/locks.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/recorded_log.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

// What runs in the background goes on, whatever a store throws.
namespace varve {
namespace {

struct Background : ::testing::Test {
    testing::RecordedLog said;
    std::promise<void> went_on;
    std::atomic<int> calls = 0;
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));

    const std::thread::id test = std::this_thread::get_id();

    void throw_first_in_the_background() {
        if (std::this_thread::get_id() == test) return;
        const int call = ++calls;
        if (call == 1) throw 42;
        if (call == 2) went_on.set_value();
    }
};

TEST_F(Background, a_sweeper_goes_on_after_what_is_no_exception) {
    store->before_read = [this] { throw_first_in_the_background(); };
    const Application bank{store, {.sweep_interval = std::chrono::milliseconds{1}, .runtime = {.log = said}}};
    said.wait_for("no std::exception");
    went_on.get_future().wait();
}

TEST_F(Background, the_heartbeats_of_locks_go_on_after_what_is_no_exception) {
    using std::chrono::milliseconds;
    store->before_write = [this](auto) { throw_first_in_the_background(); };
    ToldClock clock;
    Locks locks{store, {.time_to_live = milliseconds{8'000}}, {.clock = clock, .log = said}};
    const Lock lock = locks.acquire("a");
    for (int quarter = 0; quarter < 2; ++quarter) clock.advance_when_asleep(milliseconds{2'000});
    said.wait_for("no std::exception");
    clock.advance_when_asleep(milliseconds{500});
    went_on.get_future().wait();
    EXPECT_FALSE(lock.is_lost());
}

/// A program that has committed a row by the protocol and died before it put it in place; another one has never heard
/// of the table.
struct RowsOfOthers : Background {
    testing::ManualWorld world;
    const store::Key row{"balances", "alice"};
    std::optional<Application> dead;

    RowsOfOthers() {
        dead.emplace(store, world.options({.transactions = {.strategy = transactions::Strategy::protocol}}));
        const Outcome outcome = dead->transact([](Transaction& tx) {
            tx.execute<account::Account>("alice", account::Deposit{7});
            tx.rows<account::Balance>().put("alice", {7});
        });
        EXPECT_TRUE(outcome);
        EXPECT_TRUE(is_claimed());
    }
    bool is_claimed() const { return store->read({&row, 1}).front().value().contains("_after"); }
};

TEST_F(RowsOfOthers, are_settled_by_whoever_settles) {
    Application other{store, world.options()};
    EXPECT_TRUE(other.settle(std::chrono::minutes{1}));
    EXPECT_FALSE(is_claimed());
}

TEST_F(RowsOfOthers, are_swept_by_whoever_sweeps) {
    const Application other{store,
                            {.transactions = {.lease = std::chrono::milliseconds{10}},
                             .sweep_interval = std::chrono::milliseconds{1},
                             .runtime = {.log = said}}};
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{2};
    while (is_claimed() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_FALSE(is_claimed());
}

TEST_F(RowsOfOthers, in_a_table_that_cannot_be_had_are_said_and_all_others_are_swept) {
    const store::Write damage{{"varve", "rows nothing"}, store::Put{{{"sorted", std::int64_t{2}}}}, {}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&damage, 1}).front()));
    Application other{store, world.options()};
    EXPECT_THROW(static_cast<void>(other.settle(std::chrono::minutes{1})), CorruptionError);
    const Application sweeps{store,
                             {.transactions = {.lease = std::chrono::milliseconds{10}},
                              .sweep_interval = std::chrono::milliseconds{1},
                              .runtime = {.log = said}}};
    said.wait_for("not all tables with rows are swept: the item varve/rows nothing");
}

}  // namespace
}  // namespace varve
