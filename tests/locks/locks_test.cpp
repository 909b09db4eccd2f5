#include "locks/stored_lock.h"
#include "support/hooked_store.h"
#include "support/told_clock.h"

#include <varve/core/error.h>
#include <varve/locks/locks.h>
#include <varve/locks/metrics.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>
#include <varve/transactions/metrics.h>

#include <atomic>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace std::chrono_literals;
using testing::ManualClock;

/// Processes that share one store and one clock, which their waits move.
struct World {
    ManualClock clock{ManualClock::Mode::auto_advance};
    testing::SeededRandom random{1};
    std::shared_ptr<store::ItemStore> store = open("memory:");

    World() { store->ensure_table(locks::locks_table()); }

    /// A process.
    Locks process(std::shared_ptr<store::ItemStore> its_store) {
        return Locks{std::move(its_store), {.time_to_live = 10s, .heartbeat_thread = false}, {clock, random}};
    }
    Locks process() { return process(store); }
};

ErrorKind kind_of(auto call) {
    try {
        call();
    } catch (const Error& error) {
        return error.kind();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

TEST(Locks, one_that_is_free_is_entered_at_once_and_its_fence_grows) {
    World world;
    Locks locks = world.process();
    const Time began = world.clock.now();
    for (locks::Fence fence = 1; fence <= 3; ++fence) {
        const Lock lock = locks.acquire("a");
        EXPECT_EQ(lock.name(), "a");
        EXPECT_EQ(lock.fence(), fence);
        EXPECT_EQ(lock.ticket(), fence);
        EXPECT_FALSE(lock.is_lost());
        EXPECT_NO_THROW(lock.check());
    }
    EXPECT_EQ(locks.acquire("b").fence(), 1);
    EXPECT_EQ(world.clock.now(), began);
}

TEST(Locks, a_wait_of_zero_fails_at_once_if_anyone_is_ahead_and_writes_nothing) {
    World world;
    const auto counting = std::make_shared<testing::CountingStore>(world.store);
    Locks locks = world.process();
    Locks other = world.process(counting);
    const Lock held = locks.acquire("a");
    const Time began = world.clock.now();
    EXPECT_FALSE(other.try_acquire("a", {.wait = 0s}));
    EXPECT_EQ(kind_of([&] { static_cast<void>(other.acquire("a", {.wait = 0s})); }), ErrorKind::busy);
    EXPECT_EQ(counting->counts().writes, 0u);
    EXPECT_EQ(world.clock.now(), began);
    EXPECT_EQ(other.metrics().gave_up, 2u);
}

TEST(Locks, who_gives_up_leaves_no_row) {
    World world;
    Locks locks = world.process();
    Locks other = world.process();
    const Lock held = locks.acquire("a");
    const Time began = world.clock.now();
    EXPECT_FALSE(other.try_acquire("a", {.wait = 3s}));
    EXPECT_EQ(world.clock.now() - began, 3s);
    const Locks::State state = locks.inspect("a");
    ASSERT_EQ(state.queue.size(), 1u);
    EXPECT_EQ(state.queue.front().row.owner, state.holder.owner);
}

TEST(Locks, a_wait_lasts_as_long_as_was_asked_for_wherever_the_wall_clock_jumps) {
    for (const Duration jump : {Duration{-1h}, Duration{5s}}) {
        World world;
        const auto hooked = std::make_shared<HookedStore>(world.store);
        Locks locks = world.process();
        Locks other = world.process(hooked);
        const Lock held = locks.acquire("a");
        int looks = 0;
        hooked->after_query = [&](const store::Page&) {
            if (++looks == 3) world.clock.jump(jump);
            if (looks == 4) world.clock.jump(-jump);
        };
        const SteadyTime began = world.clock.steady_now();
        EXPECT_FALSE(other.try_acquire("a", {.wait = 3s}));
        EXPECT_EQ(world.clock.steady_now() - began, 3s);
        EXPECT_GT(looks, 4);
    }
}

TEST(Locks, a_wait_ends_when_stop_is_requested) {
    World world;
    Locks locks = world.process();
    const Lock held = locks.acquire("a");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_FALSE(locks.try_acquire("a", {.wait = Locks::for_ever, .stop = stop.get_token()}));
    EXPECT_EQ(locks.inspect("a").queue.size(), 1u);
}

TEST(Locks, what_is_released_is_free_and_nothing_but_counter_and_holder_stays) {
    World world;
    Locks locks = world.process();
    Lock lock = locks.acquire("a");
    lock.release();
    lock.release();
    EXPECT_THROW(lock.check(), LeaseLostError);
    const Locks::State state = locks.inspect("a");
    EXPECT_EQ(state.holder, (locks::Holder{.fence = 1}));
    EXPECT_TRUE(state.queue.empty());
    EXPECT_EQ(world.store->scan({.table = locks::locks_table().name}).records.size(), 2u);
}

TEST(Locks, a_handle_that_is_assigned_to_releases_what_it_had) {
    World world;
    Locks locks = world.process();
    Lock lock = locks.acquire("a");
    lock = locks.acquire("b");
    EXPECT_EQ(lock.name(), "b");
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 0s}));
}

TEST(Locks, a_holder_that_falls_silent_is_followed_by_the_next_and_says_that_it_is_lost) {
    World world;
    Locks locks = world.process();
    Locks other = world.process();
    int told = 0;
    Lock slept = locks.acquire("a", {.on_lost = [&] { ++told; }});
    const Lock next = other.acquire("a");
    EXPECT_EQ(next.fence(), 2);
    EXPECT_GE(world.clock.now() - ManualClock::default_start, 10s);
    EXPECT_TRUE(slept.is_lost());
    EXPECT_TRUE(slept.lost().stop_requested());
    EXPECT_EQ(told, 1);
    EXPECT_THROW(slept.check(), LeaseLostError);
    locks.beat();
    slept.release();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(other.inspect("a").holder.fence, 2);
    EXPECT_FALSE(other.inspect("a").holder.owner.empty());
    EXPECT_EQ(other.metrics().cleaned, 1u);
}

TEST(Locks, heartbeats_keep_a_lock_beyond_its_time_to_live) {
    World world;
    Locks locks = world.process();
    Locks other = world.process();
    const Lock lock = locks.acquire("a");
    for (Duration passed{}; passed < 60s;) {
        const Duration pause = locks.beat();
        EXPECT_FALSE(other.try_acquire("a", {.wait = 0s}));
        world.clock.advance(pause);
        passed += pause;
    }
    EXPECT_FALSE(lock.is_lost());
    EXPECT_EQ(other.inspect("a").holder.fence, 1);
}

TEST(Locks, a_refused_heartbeat_loses_the_lock_at_once_and_for_ever) {
    World world;
    Locks locks = world.process();
    World ahead;  // a process whose clock is wrong
    ahead.clock.advance(1min);
    Locks thief = ahead.process(world.store);
    Lock lock = locks.acquire("a");
    {
        const Lock stolen = thief.acquire("a", {.wait = 0s});
        EXPECT_EQ(stolen.fence(), 2);
        world.clock.advance(5s);
        locks.beat();
        EXPECT_TRUE(lock.is_lost());
    }
    locks.beat();
    EXPECT_TRUE(lock.is_lost());
    EXPECT_EQ(locks.metrics().lost, 1u);
    EXPECT_EQ(locks.inspect("a").holder, (locks::Holder{.fence = 2}));
}

TEST(Locks, a_lock_may_be_released_by_whoever_is_told_of_its_loss) {
    World world;
    Locks locks = world.process();
    std::optional<Lock> lock;
    lock = locks.acquire("a", {.on_lost = [&] { lock->release(); }});
    world.clock.advance(11s);
    locks.beat();
    EXPECT_TRUE(locks.inspect("a").queue.empty());
    EXPECT_EQ(locks.metrics().holding, 0u);
}

TEST(Locks, what_on_lost_throws_keeps_no_other_lock_from_its_heartbeat) {
    World world;
    Locks locks = world.process();
    const Lock first = locks.acquire("a", {.on_lost = [] { throw 42; }});
    const Lock second = locks.acquire("b");
    EXPECT_TRUE(locks.evict("a", first.ticket()));
    world.clock.advance(5s);
    locks.beat();
    EXPECT_TRUE(first.is_lost());
    world.clock.advance(9s);
    EXPECT_FALSE(second.is_lost());
}

TEST(Locks, several_are_entered_in_the_order_of_their_names_or_not_at_all) {
    World world;
    const auto counting = std::make_shared<testing::CountingStore>(world.store);
    Locks locks = world.process(counting);
    Locks other = world.process();
    {
        counting->start_recording();
        const std::vector<Lock> all = locks.acquire_all({"c", "a", "b", "a"});
        ASSERT_EQ(all.size(), 3u);
        EXPECT_EQ(all[0].name() + all[1].name() + all[2].name(), "abc");
        EXPECT_FALSE(other.try_acquire("b", {.wait = 0s}));
    }
    const Lock b = other.acquire("b", {.wait = 0s});
    const Time began = world.clock.now();
    EXPECT_FALSE(locks.try_acquire_all({"c", "b", "a"}, {.wait = 2s}));
    EXPECT_EQ(world.clock.now() - began, 2s);
    EXPECT_EQ(kind_of([&] { static_cast<void>(locks.acquire_all({"b"}, {.wait = 0s})); }), ErrorKind::busy);
    for (const char* name : {"a", "c"}) EXPECT_TRUE(other.try_acquire(name, {.wait = 0s})) << name;
    EXPECT_EQ(locks.metrics().holding, 0u);
}

/// Four tickets of lock "a" are used up. The fifth is drawn through a store that a test may stop before it is queued.
struct LateTicket : World {
    Locks on_time = process();
    std::shared_ptr<HookedStore> hooked = std::make_shared<HookedStore>(store);
    Locks late = process(hooked);
    std::optional<Lock> six;

    LateTicket() {
        for (int i = 0; i < 4; ++i) on_time.acquire("a").release();
    }
};

// The queue that this lock comes from lets whoever is first in it enter. Ticket 5 is drawn before ticket 6, queued
// after it, and finds itself first while 6 is inside.
TEST(Locks, ticket_5_drawn_early_and_queued_late_does_not_enter_beside_ticket_6) {
    LateTicket world;
    world.hooked->before_write = [&](std::span<const store::Write> writes) {
        if (world.six || !locks::ticket_of(writes.front().key)) return;
        EXPECT_EQ(locks::ticket_of(writes.front().key), 5);
        world.six = world.on_time.acquire("a", {.wait = 0s});
    };
    EXPECT_FALSE(world.late.try_acquire("a", {.wait = 5s}));
    ASSERT_TRUE(world.six);
    EXPECT_EQ(world.six->ticket(), 6);
    EXPECT_FALSE(world.six->is_lost());
    EXPECT_EQ(world.on_time.inspect("a").holder.ticket, 6);
}

TEST(Locks, ticket_5_queued_late_is_still_before_ticket_7) {
    LateTicket world;
    world.hooked->before_write = [&](std::span<const store::Write> writes) {
        if (world.six || !locks::ticket_of(writes.front().key)) return;
        world.six = world.on_time.acquire("a", {.wait = 0s});
        static_cast<void>(world.store->write(std::vector{
            locks::draw("a", 6),
            locks::enqueue("a", 7, {.owner = "seven", .expires = world.clock.now() + 1min}),
        }));
    };
    world.hooked->after_write = [&](std::span<const store::Write> writes, auto&) {
        if (world.six && locks::ticket_of(writes.front().key)) world.six->release();
    };
    const Lock five = world.late.acquire("a");
    EXPECT_EQ(five.ticket(), 5);
    EXPECT_FALSE(world.on_time.try_acquire("a", {.wait = 1s}));
}

TEST(Locks, waiters_remove_expired_rows_ahead_of_them_and_no_others) {
    World world;
    Locks locks = world.process();
    locks.acquire("a").release();
    const Time now = world.clock.now();
    static_cast<void>(world.store->write(std::vector{
        locks::enqueue("a", 2, {.owner = "dead", .expires = now - 1s}),
        locks::enqueue("a", 3, {.owner = "alive", .expires = now + 2s}),
        locks::enqueue("a", 4, {.owner = "dead too", .expires = now - 1s}),
        store::Write{locks::counter_key("a"), store::Put{{{"drawn", 4}}}},
    }));
    EXPECT_FALSE(locks.try_acquire("a", {.wait = 0s}));
    Locks::State state = locks.inspect("a");
    ASSERT_EQ(state.queue.size(), 1u);
    EXPECT_EQ(state.queue.front().row.owner, "alive");
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 3s}));
    EXPECT_GE(world.clock.now(), now + 2s);
    EXPECT_EQ(locks.metrics().cleaned, 3u);
}

TEST(Locks, a_waiters_own_row_that_others_removed_comes_back_in_its_place) {
    World world;
    Locks locks = world.process();
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks other = world.process(hooked);
    Lock first = locks.acquire("a");
    int removed = 0;
    hooked->after_write = [&](std::span<const store::Write> writes, auto&) {
        if (locks::ticket_of(writes.front().key) != 2 || !std::holds_alternative<store::Put>(writes.front().action))
            return;
        if (++removed > 2) return first.release();
        static_cast<void>(world.store->write(std::vector{store::Write{writes.front().key, store::Erase{}}}));
    };
    const Lock second = other.acquire("a");
    EXPECT_EQ(second.ticket(), 2);
    EXPECT_EQ(removed, 3);
}

TEST(Locks, a_long_wait_keeps_its_place_alive) {
    World world;
    Locks locks = world.process();
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks other = world.process(hooked);
    const Lock first = locks.acquire("a");
    int extended = 0;
    hooked->before_write = [&](std::span<const store::Write> writes) {
        locks.beat();
        extended += std::holds_alternative<store::Update>(writes.front().action) ? 1 : 0;
    };
    hooked->before_read = [&] { locks.beat(); };
    EXPECT_FALSE(other.try_acquire("a", {.wait = 9s}));
    EXPECT_EQ(extended, 1);
}

// ---- wrong clocks

TEST(WrongClocks, a_dead_holder_whose_clock_was_a_day_ahead_is_given_up_after_its_time_to_live) {
    World world;
    World ahead;
    ahead.clock.jump(24h);
    Locks dead = ahead.process(world.store);
    const Lock lock = dead.acquire("a");
    Locks locks = world.process();
    const SteadyTime began = world.clock.steady_now();
    const Lock next = locks.acquire("a", {.wait = 11s});
    EXPECT_EQ(next.fence(), 2);
    EXPECT_GE(world.clock.steady_now() - began, 10s);
}

TEST(WrongClocks, a_dead_waiter_whose_clock_was_a_day_ahead_blocks_nobody_for_longer) {
    World world;
    Locks locks = world.process();
    static_cast<void>(world.store->write(std::vector{
        locks::enqueue("a", 1, {.owner = "dead", .expires = world.clock.now() + 24h, .time_to_live = 3s}),
        store::Write{locks::counter_key("a"), store::Put{{{"drawn", 1}}}},
    }));
    EXPECT_FALSE(locks.try_acquire("a", {.wait = 2s}));
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 2s})) << "what it has seen before counts";
    EXPECT_EQ(locks.metrics().cleaned, 1u);
}

TEST(WrongClocks, a_holder_with_a_longer_time_to_live_is_given_its_own) {
    World world;
    Locks patient{world.store, {.time_to_live = 60s, .heartbeat_thread = false}, {world.clock, world.random}};
    const Lock lock = patient.acquire("a");
    Locks locks = world.process();
    EXPECT_FALSE(locks.try_acquire("a", {.wait = 50s}));
    EXPECT_FALSE(lock.is_lost());
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 11s}));
}

TEST(WrongClocks, a_holder_whose_clock_was_set_a_day_ahead_lives_on_by_its_heartbeats) {
    World world;
    World ahead;
    Locks owner = ahead.process(world.store);
    const Lock lock = owner.acquire("a");
    Locks other = world.process();
    ahead.clock.jump(24h);
    for (int beats = 0; beats < 6; ++beats) {
        ahead.clock.advance(5s);
        owner.beat();
        EXPECT_FALSE(other.try_acquire("a", {.wait = 5s}));
    }
    EXPECT_FALSE(lock.is_lost());
}

TEST(WrongClocks, a_heartbeat_always_moves_the_expiry_forwards) {
    World world;
    Locks locks = world.process();
    const Lock lock = locks.acquire("a");
    for (const Duration jump : {Duration{-24h}, Duration{1s}, Duration{-1s}, Duration{48h}, Duration{-48h}}) {
        world.clock.jump(jump);
        const Time before = locks.inspect("a").holder.expires;
        world.clock.advance(5s);
        locks.beat();
        EXPECT_GT(locks.inspect("a").holder.expires, before);
        EXPECT_FALSE(lock.is_lost());
    }
}

TEST(WrongClocks, who_counts_its_own_place_as_over_renews_it_before_it_enters) {
    World world;
    Locks locks = world.process();
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks other = world.process(hooked);
    std::vector<std::string> writes;
    hooked->before_write = [&](std::span<const store::Write> all) {
        const store::Key& key = all.front().key;
        if (locks::ticket_of(key) && std::holds_alternative<store::Put>(all.front().action)) world.clock.jump(1h);
        writes.push_back(locks::ticket_of(key) ? "place" : std::get<std::string>(key.sort));
    };
    hooked->after_write = [&](std::span<const store::Write> all, auto&) {
        // Written by a clock that was behind: by now it is over.
        if (locks::ticket_of(all.front().key) && std::holds_alternative<store::Put>(all.front().action))
            world.clock.jump(1h);
    };
    const Lock lock = other.acquire("a");
    EXPECT_EQ(writes, (std::vector<std::string>{"counter", "place", "place", "holder"}));
}

// ---- evicting, and what the dead leave

TEST(Evict, a_holder_that_is_evicted_lets_the_next_one_in_and_learns_that_it_has_lost) {
    World world;
    Locks locks = world.process();
    Locks other = world.process();
    const Lock lock = locks.acquire("a");
    EXPECT_FALSE(other.evict("a", 7));
    EXPECT_FALSE(other.evict("b", 1));
    EXPECT_TRUE(other.evict("a", other.inspect("a").holder.ticket));
    EXPECT_FALSE(other.evict("a", 1));
    const Lock next = other.acquire("a", {.wait = 0s});
    EXPECT_EQ(next.fence(), 2);
    world.clock.advance(5s);
    locks.beat();
    other.beat();
    EXPECT_TRUE(lock.is_lost());
    EXPECT_FALSE(next.is_lost());
}

TEST(Evict, who_was_evicted_is_told_so) {
    World world;
    Locks locks = world.process();
    const Lock lock = locks.acquire("a");
    EXPECT_TRUE(locks.evict("a", lock.ticket()));
    world.clock.advance(5s);
    locks.beat();
    try {
        lock.check();
        FAIL() << "it was lost";
    } catch (const LeaseLostError& error) {
        EXPECT_NE(std::string{error.what()}.find("evict"), std::string::npos) << error.what();
    }
}

TEST(Evict, a_place_in_the_queue_can_be_taken_from_a_dead_waiter) {
    World world;
    Locks locks = world.process();
    const store::Write dead =
        locks::enqueue("a", 3, {.owner = "dead", .expires = world.clock.now() + 24h, .time_to_live = 24h});
    const store::Write counter{locks::counter_key("a"), store::Put{{{"drawn", 3}}}};
    static_cast<void>(world.store->write(std::vector{dead, counter}));
    EXPECT_FALSE(locks.try_acquire("a", {.wait = 0s}));
    EXPECT_TRUE(locks.evict("a", 3));
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 0s}));
}

TEST(Evict, repeats_what_was_not_answered) {
    World world;
    Locks locks = world.process();
    const Lock lock = locks.acquire("a");
    const auto hooked = std::make_shared<HookedStore>(world.store);
    int failures = 0;
    hooked->after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        if (++failures > 3) return;
        for (auto& answer : answers) answer = Failure{ErrorKind::unavailable, true, "no answer"};
    };
    Locks other = world.process(hooked);
    EXPECT_TRUE(other.evict("a", 1));
    EXPECT_TRUE(other.inspect("a").holder.is_free());
}

TEST(Leftovers, a_wait_of_zero_gets_in_behind_any_number_of_places_that_are_over) {
    World world;
    Locks locks = world.process();
    std::vector<store::Write> dead{{locks::counter_key("a"), store::Put{{{"drawn", 500}}}}};
    for (int i = 1; i <= 500; ++i)
        dead.push_back(locks::enqueue("a", i, {.owner = "dead", .expires = world.clock.now() - 1s}));
    static_cast<void>(world.store->write(dead));
    EXPECT_TRUE(locks.try_acquire("a", {.wait = 0s}));
    EXPECT_EQ(locks.metrics().cleaned, 500u);
    EXPECT_TRUE(locks.inspect("a").queue.empty());
}

TEST(Leftovers, places_of_the_dead_in_queues_that_nobody_joins_are_collected_and_no_others) {
    World world;
    Locks locks = world.process();
    const Lock held = locks.acquire("held");
    std::vector<store::Write> rows;
    for (int i = 1; i <= 300; ++i) {
        const std::string name = "a" + std::to_string(i);
        rows.push_back(locks::enqueue(name, 1, {.owner = "dead", .expires = world.clock.now() + 1s}));
        rows.push_back(locks::enqueue(name, 2, {.owner = "ahead", .expires = world.clock.now() + 24h}));
        rows.push_back(
            locks::enqueue(name, 3, {.owner = "patient", .expires = world.clock.now() + 24h, .time_to_live = 24h}));
    }
    rows.push_back({locks::queue_key("b", 1), store::Put{{{"owner", std::int64_t{1}}}}, {}});
    static_cast<void>(world.store->write(rows));
    const auto pass = [&] {
        while (!locks.collect_page()) {
        }
    };
    pass();
    EXPECT_EQ(locks.metrics().cleaned, 0u);
    world.clock.advance(5s);
    locks.beat();
    pass();
    EXPECT_EQ(locks.metrics().cleaned, 300u);
    world.clock.advance(5s);
    locks.beat();
    pass();
    EXPECT_EQ(locks.metrics().cleaned, 600u);
    EXPECT_EQ(locks.inspect("a1").queue.size(), 1u);
    EXPECT_FALSE(held.is_lost());
    EXPECT_EQ(locks.inspect("held").queue.size(), 1u);
}

TEST(Leftovers, a_counter_or_a_fence_at_its_end_is_an_error_that_says_so) {
    World world;
    Locks locks = world.process();
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    const auto message = [&](const char* name) -> std::string {
        try {
            static_cast<void>(locks.acquire(name));
        } catch (const CorruptionError& error) {
            return error.what();
        }
        return "no error";
    };
    static_cast<void>(world.store->write(std::vector{
        store::Write{locks::counter_key("a"), store::Put{{{"drawn", end}}}},
        store::Write{locks::counter_key("b"), store::Put{{{"drawn", end - 1}}}},
        store::Write{locks::counter_key("c"), store::Put{{{"drawn", std::int64_t{-3}}}}},
        locks::enter("d", {}, {.fence = end, .owner = "dead", .ticket = 1}),
    }));
    EXPECT_NE(message("a").find("last ticket"), std::string::npos) << message("a");
    EXPECT_EQ(locks.acquire("b").ticket(), end);
    EXPECT_NE(message("c").find("cannot be read"), std::string::npos) << message("c");
    EXPECT_NE(message("d").find("fence"), std::string::npos) << message("d");
}

// ---- answers that do not come

/// Swallows the answer to the first request that `which` names, after it had its effect.
std::shared_ptr<HookedStore> forgetful(const World& world, std::function<bool(const store::Write&)> which) {
    const auto hooked = std::make_shared<HookedStore>(world.store);
    hooked->after_write = [done = false, which = std::move(which)](std::span<const store::Write> writes,
                                                                   std::vector<store::WriteAnswer>& answers) mutable {
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (done || !which(writes[i])) continue;
            done = true;
            answers[i] = Failure{ErrorKind::unavailable, true, "no answer"};
        }
    };
    return hooked;
}

TEST(LostAnswers, to_a_draw_waste_a_ticket_and_share_none) {
    World world;
    Locks locks =
        world.process(forgetful(world, [](const store::Write& w) { return w.key == locks::counter_key("a"); }));
    EXPECT_EQ(locks.acquire("a").ticket(), 2);
}

TEST(LostAnswers, to_the_own_row_are_recognised) {
    World world;
    Locks locks =
        world.process(forgetful(world, [](const store::Write& w) { return locks::ticket_of(w.key).has_value(); }));
    const Lock lock = locks.acquire("a");
    EXPECT_EQ(lock.ticket(), 1);
    EXPECT_EQ(locks.inspect("a").queue.size(), 1u);
}

TEST(LostAnswers, to_the_own_row_that_others_removed_before_a_repeat_are_no_harm) {
    World world;
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks locks = world.process(hooked);
    bool refused = false;
    hooked->after_write = [&](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        if (!locks::ticket_of(writes[0].key) || std::exchange(refused, true)) return;
        const store::Write removal{writes[0].key, store::Erase{}, {}};
        static_cast<void>(world.store->write({&removal, 1}));
        answers[0] = store::Refused{};  // nothing is there any more
    };
    EXPECT_EQ(locks.acquire("a").ticket(), 1);
    EXPECT_TRUE(refused);
}

TEST(LostAnswers, to_the_entering_are_recognised) {
    World world;
    Locks locks =
        world.process(forgetful(world, [](const store::Write& w) { return w.key == locks::holder_key("a"); }));
    const Lock lock = locks.acquire("a");
    EXPECT_EQ(lock.fence(), 1);
    EXPECT_EQ(locks.inspect("a").holder.fence, 1);
}

TEST(LostAnswers, to_a_heartbeat_are_recognised) {
    World world;
    int holder_writes = 0;
    const auto store = forgetful(
        world, [&](const store::Write& w) { return w.key == locks::holder_key("a") && ++holder_writes == 2; });
    Locks locks = world.process(store);
    const Lock lock = locks.acquire("a");
    world.clock.advance(5s);
    locks.beat();
    world.clock.advance(4s);
    locks.beat();
    world.clock.advance(4s);
    EXPECT_FALSE(lock.is_lost());
}

TEST(LostAnswers, to_a_release_are_repeated) {
    World world;
    int holder_writes = 0;
    const auto store = forgetful(
        world, [&](const store::Write& w) { return w.key == locks::holder_key("a") && ++holder_writes == 2; });
    Locks locks = world.process(store);
    locks.acquire("a").release();
    EXPECT_EQ(locks.inspect("a").holder, (locks::Holder{.fence = 1}));
    EXPECT_GE(holder_writes, 2);
}

TEST(LostAnswers, who_gives_up_takes_back_an_entering_that_got_through) {
    World world;
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks locks = world.process(hooked);
    hooked->after_write = [&](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        if (writes.front().key == locks::holder_key("a")) answers[0] = Failure{ErrorKind::unavailable, true, "silent"};
    };
    EXPECT_THROW(static_cast<void>(locks.try_acquire("a", {.wait = 0s})), UnavailableError);
    const Locks::State state = locks.inspect("a");
    EXPECT_EQ(state.holder, (locks::Holder{.fence = 1}));
    EXPECT_TRUE(state.queue.empty());
}

TEST(LostAnswers, a_silent_store_loses_the_lock_when_its_time_is_over) {
    World world;
    const auto hooked = std::make_shared<HookedStore>(world.store);
    Locks locks = world.process(hooked);
    const Lock lock = locks.acquire("a");
    hooked->after_write = [](auto, std::vector<store::WriteAnswer>& answers) {
        for (auto& answer : answers) answer = Failure{ErrorKind::unavailable, true, "silent"};
    };
    for (int beats = 0; !lock.is_lost(); ++beats) {
        ASSERT_LT(beats, 100);
        world.clock.advance(locks.beat());
    }
    EXPECT_EQ(world.clock.now() - ManualClock::default_start, 10s);
    EXPECT_THROW(static_cast<void>(locks.acquire("b", {.wait = Locks::for_ever})), UnavailableError);
}

TEST(StoredLocks, of_a_form_that_is_not_known_are_refused) {
    World world;
    Locks locks = world.process();
    locks.acquire("a").release();
    static_cast<void>(
        world.store->write(std::vector{store::Write{locks::holder_key("a"), store::Put{{{"owner", "by hand"}}}}}));
    EXPECT_THROW(static_cast<void>(locks.acquire("a")), CorruptionError);
    EXPECT_THROW(Locks(world.store, {.time_to_live = 0s}), InvalidError);
    EXPECT_THROW(static_cast<void>(locks.acquire("")), InvalidError);
}

// ---- the thread of the heartbeats

TEST(HeartbeatThread, keeps_all_locks_of_one_object_with_one_batch_and_sleeps_in_between) {
    ToldClock clock;
    const auto counting = std::make_shared<testing::CountingStore>(open("memory:"));
    Locks locks{counting, {.time_to_live = 8s}, {.clock = clock}};
    const Lock a = locks.acquire("a");
    const Lock b = locks.acquire("b");
    counting->reset();
    constexpr int quarters = 40;  // of the time to live; it sleeps no longer at once
    for (int i = 0; i <= quarters; ++i) clock.advance_when_asleep(i < quarters ? 2s : 0s);
    EXPECT_FALSE(a.is_lost());
    EXPECT_FALSE(b.is_lost());
    EXPECT_EQ(locks.metrics().heartbeats, 2u * quarters / 2);
    EXPECT_EQ(counting->counts().write_batches, quarters / 2u);
}

TEST(HeartbeatThread, tells_of_a_loss_when_its_heartbeat_is_refused) {
    ToldClock clock;
    const auto store = open("memory:");
    Locks locks{store, {.time_to_live = 8s}, {.clock = clock}};
    std::atomic<bool> told = false;
    std::thread::id teller;
    const Lock lock = locks.acquire("a", {.on_lost = [&] {
                                        teller = std::this_thread::get_id();
                                        told = true;
                                        told.notify_all();
                                    }});
    const locks::Holder held = locks.inspect("a").holder;
    const store::Write theft = locks::enter(
        "a", held, {.fence = 2, .owner = "somebody whose clock is ahead", .ticket = 2, .expires = held.expires});
    EXPECT_TRUE(std::holds_alternative<store::Applied>(store->write({&theft, 1}).front()));
    clock.advance_when_asleep(2s);
    clock.advance_when_asleep(2s);
    told.wait(false);
    EXPECT_NE(teller, std::this_thread::get_id());
    EXPECT_TRUE(lock.is_lost());
    EXPECT_TRUE(lock.lost().stop_requested());
}

}  // namespace
}  // namespace varve
