#include "locks/stored_lock.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>

#include <gtest/gtest.h>

/// The figures of docs/locks.md.
namespace varve {
namespace {

using namespace std::chrono_literals;

struct Fixture {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(open("memory:"));
    Locks locks{store, {.heartbeat_thread = false}, {.clock = clock}};

    testing::RequestCounts cost_of(auto call) {
        store->reset();
        call();
        return store->counts();
    }
};

TEST(CostOfALock, to_acquire_is_3_writes_and_2_queries_in_5_round_trips) {
    Fixture f;
    f.locks.acquire("a").release();
    std::optional<Lock> lock;
    const testing::RequestCounts cost = f.cost_of([&] { lock = f.locks.acquire("a"); });
    EXPECT_EQ(cost.writes, 3u);
    EXPECT_EQ(cost.queries, 2u);
    EXPECT_EQ(cost.round_trips(), 5u);
}

TEST(CostOfALock, to_release_is_2_writes_in_1_round_trip) {
    Fixture f;
    Lock lock = f.locks.acquire("a");
    const testing::RequestCounts cost = f.cost_of([&] { lock.release(); });
    EXPECT_EQ(cost.writes, 2u);
    EXPECT_EQ(cost.round_trips(), 1u);
}

TEST(CostOfALock, a_heartbeat_is_2_writes_for_each_lock_in_1_round_trip_for_all) {
    Fixture f;
    const std::vector<Lock> locks = f.locks.acquire_all({"a", "b", "c"});
    f.clock.advance(5s);
    const testing::RequestCounts cost = f.cost_of([&] { f.locks.beat(); });
    EXPECT_EQ(cost.writes, 6u);
    EXPECT_EQ(cost.round_trips(), 1u);
}

TEST(CostOfALock, to_find_it_taken_is_1_query) {
    Fixture f;
    const Lock lock = f.locks.acquire("a");
    const testing::RequestCounts cost = f.cost_of([&] { EXPECT_FALSE(f.locks.try_acquire("a", {.wait = 0s})); });
    EXPECT_EQ(cost.queries, 1u);
    EXPECT_EQ(cost.round_trips(), 1u);
}

TEST(CostOfALock, to_wait_is_1_query_every_10_ms_for_each_place_and_every_half_second_from_the_50th_on) {
    Fixture f;
    const Lock lock = f.locks.acquire("a");
    const auto polls_in_2_s = [&] {
        return f.cost_of([&] { EXPECT_FALSE(f.locks.try_acquire("a", {.wait = 2s})); }).queries;
    };
    const std::uint64_t next = polls_in_2_s();
    EXPECT_GE(next, 200u);
    EXPECT_LE(next, 403u);
    for (int i = 0; i < 60; ++i) {
        const locks::Queued row{.owner = "waiter", .expires = f.clock.now() + 1h};
        const store::Write write = locks::enqueue("a", 1000 + i, row);
        static_cast<void>(f.store->write({&write, 1}));
    }
    const store::Write counter{locks::counter_key("a"), store::Put{{{"drawn", 2000}}}};
    static_cast<void>(f.store->write({&counter, 1}));
    const std::uint64_t far = polls_in_2_s();
    EXPECT_GE(far, 4u);
    EXPECT_LE(far, 11u);
}

}  // namespace
}  // namespace varve
