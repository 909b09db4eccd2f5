#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/core/error.h>
#include <varve/locks/locks.h>
#include <varve/locks/metrics.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <gtest/gtest.h>

/// A lock as a condition of commands and rows: whatever path a transaction takes, a holder that slept is refused.
namespace varve {
namespace {

using namespace std::chrono_literals;
using namespace account;
using testing::ManualClock;
using transactions::Path;
using transactions::Strategy;

struct Case {
    const char* name;
    Strategy strategy;
    unsigned reserve_after;
    void (*body)(Transaction&);
    Path path;  ///< by which it commits while the lock is held
};

struct Mine {
    static constexpr std::string_view table = "varve_locks";
    int x = 0;
};

void deposit(Transaction& tx) {
    tx.execute<Account>("alice", Deposit{5});
}
void transfer(Transaction& tx) {
    tx.execute<Account>("alice", Withdraw{5});
    tx.execute<Account>("bob", Deposit{5});
}
void change_a_row(Transaction& tx) {
    tx.rows<Balance>().update("alice", [](Balance& row) { row.cents += 5; });
}
void only_read(Transaction& tx) {
    static_cast<void>(tx.load<Account>("alice"));
}
void write_nothing(Transaction&) {}
void be_rejected(Transaction& tx) {
    tx.execute<Account>("bob", Withdraw{1'000'000});
}

TEST(Fence, of_a_lock_that_the_user_keeps_in_the_same_store_is_that_of_the_application) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, {.sweep = false}};
    Locks locks{store};
    Lock lock = locks.acquire("month-end", {.wait = 5s});
    ASSERT_TRUE(bank.transact([&](Transaction& tx) {
        tx.fenced_by(lock);
        deposit(tx);
    }));
    Locks elsewhere{open("memory:")};
    const Lock other = elsewhere.acquire("month-end");
    EXPECT_THROW((void)bank.transact([&](Transaction& tx) { tx.fenced_by(other); }), InvalidError);
}

class Fencing : public ::testing::TestWithParam<Case>, protected testing::ManualWorld {
  protected:
    Fencing() { static_cast<void>(bank.execute<Account>("alice", Deposit{1000})); }

    /// Somebody whose clock is a minute ahead takes the lock for expired.
    Lock steal() { return thieves.acquire("l", {.wait = 0s}); }

    ManualClock ahead{ManualClock::default_start + 1min, ManualClock::Mode::auto_advance};
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));
    Application bank{store, options({.escalation = {.reserve_after = GetParam().reserve_after},
                                     .transactions = {.strategy = GetParam().strategy},
                                     .locks = {.heartbeat_thread = false}})};
    Rows<Balance> balances = bank.rows<Balance>();
    Locks thieves{store, {.heartbeat_thread = false}, {.clock = ahead}};
};

TEST_P(Fencing, lets_the_holder_commit_and_no_heartbeat_disturbs_it) {
    const Lock lock = bank.locks().acquire("l");
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        tx.fenced_by(lock);
        tx.fenced_by(lock);
        clock.advance(5s);
        bank.locks().beat();
        GetParam().body(tx);
    });
    EXPECT_EQ(bank.locks().metrics().heartbeats, 1u);
    if (GetParam().body == be_rejected) {
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, "insufficient_funds");
    } else {
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->path, GetParam().path);
        EXPECT_EQ(outcome->attempts, 1u);
    }
}

TEST_P(Fencing, refuses_a_holder_that_slept_past_its_time_and_does_not_know) {
    const Lock lock = bank.locks().acquire("l");
    std::optional<Lock> stolen;
    int runs = 0;
    EXPECT_THROW(static_cast<void>(bank.transact([&](Transaction& tx) {
                     ++runs;
                     tx.fenced_by(lock);
                     if (!stolen) stolen = steal();
                     EXPECT_FALSE(lock.is_lost());
                     GetParam().body(tx);
                 })),
                 LeaseLostError);
    EXPECT_EQ(runs, 1);
    later.drain();
    EXPECT_EQ(bank.load<Account>("alice").version, 1);
    EXPECT_EQ(bank.load<Account>("bob").version, 0);
    EXPECT_FALSE(balances.get("alice"));
}

TEST_P(Fencing, refuses_after_the_release) {
    Lock lock = bank.locks().acquire("l");
    lock.release();
    EXPECT_THROW(static_cast<void>(bank.transact([&](Transaction& tx) {
                     tx.fenced_by(lock);
                     GetParam().body(tx);
                 })),
                 LeaseLostError);
    EXPECT_EQ(bank.load<Account>("alice").version, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Paths, Fencing,
    ::testing::Values(Case{"one_aggregate_native", Strategy::automatic, 8, deposit, Path::native},
                      Case{"one_aggregate_by_the_protocol", Strategy::protocol, 8, deposit, Path::protocol},
                      Case{"two_aggregates_native", Strategy::automatic, 8, transfer, Path::native},
                      Case{"two_aggregates_by_the_protocol", Strategy::protocol, 8, transfer, Path::protocol},
                      Case{"two_aggregates_reserved", Strategy::automatic, 0, transfer, Path::reserved},
                      Case{"a_row_native", Strategy::automatic, 8, change_a_row, Path::native},
                      Case{"a_row_by_the_protocol", Strategy::protocol, 8, change_a_row, Path::protocol},
                      Case{"what_only_reads", Strategy::automatic, 8, only_read, Path::nothing},
                      Case{"what_writes_nothing", Strategy::automatic, 8, write_nothing, Path::nothing},
                      Case{"a_rejection", Strategy::protocol, 8, be_rejected, Path::nothing}),
    [](const auto& info) { return info.param.name; });

TEST(FencedCommand, is_one_that_carries_the_lock_as_an_option) {
    Application bank{open("memory:"), {.sweep = false, .locks = {.heartbeat_thread = false}}};
    Lock lock = bank.locks().acquire("l");
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{5}, {.fenced_by = &lock}));
    lock.release();
    EXPECT_THROW(static_cast<void>(bank.execute<Account>("alice", Deposit{5}, {.fenced_by = &lock})), LeaseLostError);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 5);
}

struct Costs {
    testing::RequestCounts plain;
    testing::RequestCounts fenced;
};
/// Of a command on an aggregate that is known.
Costs costs(Application& bank, testing::CountingStore& store) {
    static_cast<void>(bank.execute<Account>("alice", Deposit{5}));
    const Lock lock = bank.locks().acquire("l");
    const auto cost = [&](const CommandOptions& options) {
        store.reset();
        static_cast<void>(bank.execute<Account>("alice", Deposit{5}, options).value());
        return store.counts();
    };
    return {.plain = cost({}), .fenced = cost({.fenced_by = &lock})};
}

TEST(FencedCommand, costs_a_check_in_the_same_request_where_the_store_writes_atomically) {
    const auto store = std::make_shared<testing::CountingStore>(open("memory:"));
    Application bank{store, {.sweep = false, .locks = {.heartbeat_thread = false}}};
    const auto [plain, fenced] = costs(bank, *store);
    EXPECT_EQ(fenced.round_trips(), plain.round_trips());
    EXPECT_EQ(fenced.writes, plain.writes + 1);
    EXPECT_EQ(fenced.atomic_batches, 1u);
    EXPECT_EQ(fenced.reads, 0u);
}

TEST(FencedCommand, costs_1_write_and_2_round_trips_more_where_it_does_not) {
    const auto store = std::make_shared<testing::CountingStore>(open("memory:"));
    testing::ManualWorld world;
    Application bank{
        store, world.options({.transactions = {.strategy = Strategy::protocol}, .locks = {.heartbeat_thread = false}})};
    const auto [plain, fenced] = costs(bank, *store);
    EXPECT_EQ(fenced.writes, plain.writes + 1);
    EXPECT_EQ(fenced.round_trips(), plain.round_trips() + 2);
    EXPECT_EQ(fenced.reads, 1u);
}

TEST(FencedCommand, of_a_lock_in_another_store_is_refused) {
    Application bank{open("memory:"), {.sweep = false}};
    Locks elsewhere{open("memory:"), {.heartbeat_thread = false}};
    const Lock lock = elsewhere.acquire("l");
    EXPECT_THROW(static_cast<void>(bank.execute<Account>("alice", Deposit{5}, {.fenced_by = &lock})), InvalidError);
}

TEST(FencedCommand, needs_a_table_that_no_read_model_may_have) {
    Application bank{open("memory:"), {.sweep = false}};
    EXPECT_THROW(bank.rows<Mine>(), InvalidError);
}

}  // namespace
}  // namespace varve
