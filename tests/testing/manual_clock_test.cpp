#include <varve/core/error.h>
#include <varve/testing/manual_clock.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, time_stands_still_until_it_is_moved) {
    ManualClock clock{parse_time("2026-03-01")};
    EXPECT_EQ(clock.now(), clock.now());
    clock.advance(90min);
    EXPECT_EQ(to_string(clock.now()), "2026-03-01T01:30:00.000000Z");
    EXPECT_THROW(clock.advance(-30min), InvalidError);
    EXPECT_EQ(to_string(clock.now()), "2026-03-01T01:30:00.000000Z");
}

TEST(ManualClock, setting_the_wall_clock_lets_no_time_pass) {
    ManualClock clock{parse_time("2026-03-01")};
    clock.advance(1h);
    const SteadyTime before = clock.steady_now();
    clock.jump(-30min);
    EXPECT_EQ(to_string(clock.now()), "2026-03-01T00:30:00.000000Z");
    EXPECT_EQ(clock.steady_now(), before);

    std::atomic<bool> awake = false;
    std::thread sleeper{[&] {
        clock.sleep_for(10s);
        awake = true;
    }};
    clock.wait_for_sleepers(1);
    clock.jump(24h);
    EXPECT_FALSE(awake);
    clock.advance(10s);
    sleeper.join();
    EXPECT_EQ(clock.steady_now() - before, 10s);
}

TEST(ManualClock, a_sleeper_wakes_when_its_time_has_come_and_not_before) {
    ManualClock clock;
    std::atomic<bool> awake = false;
    std::thread sleeper{[&] {
        clock.sleep_for(10s);
        awake = true;
    }};
    clock.wait_for_sleepers(1);
    clock.advance(9s);
    EXPECT_FALSE(awake);
    clock.advance(1s);
    sleeper.join();
    EXPECT_TRUE(awake);
}

TEST(ManualClock, a_stop_request_ends_a_sleep) {
    ManualClock clock;
    const Time before = clock.now();
    std::jthread sleeper{[&](std::stop_token stop) { clock.sleep_for(1h, stop); }};
    clock.wait_for_sleepers(1);
    sleeper.request_stop();
    sleeper.join();
    EXPECT_EQ(clock.now(), before);
}

TEST(ManualClock, with_auto_advance_a_sleep_moves_the_clock_itself) {
    ManualClock clock{ManualClock::Mode::auto_advance};
    const Time before = clock.now();
    clock.sleep_for(5s);
    clock.sleep_for(-5s);
    EXPECT_EQ(clock.now() - before, 5s);
}

}  // namespace
}  // namespace varve::testing
