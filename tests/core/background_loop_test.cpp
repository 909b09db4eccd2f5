#include "core/background_loop.h"

#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>

#include <array>
#include <atomic>
#include <future>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

namespace varve {
namespace {

using namespace std::chrono_literals;

struct Loop : ::testing::Test {
    testing::ManualClock clock;
    testing::RecordedLog log;
    std::atomic<int> turns = 0;

    BackgroundLoop loop(BackgroundLoop::Turn turn) {
        return BackgroundLoop{{.clock = clock, .log = log},
                              {.thread = "test-loop", .work = "the test", .retry_after = 5s},
                              std::move(turn)};
    }
};

TEST_F(Loop, takes_a_turn_after_each_pause) {
    const BackgroundLoop each_second = loop([this](auto&) {
        ++turns;
        turns.notify_all();
        return 1s;
    });
    for (int turn = 1; turn <= 3; ++turn) {
        turns.wait(turn - 1);
        clock.wait_for_sleepers(1);
        EXPECT_EQ(turns, turn);
        clock.advance(1s);
    }
}

TEST_F(Loop, that_is_woken_does_not_wait_for_the_end_of_its_pause) {
    std::promise<void> again;
    BackgroundLoop hourly = loop([&](auto&) {
        if (++turns == 2) again.set_value();
        return 1h;
    });
    clock.wait_for_sleepers(1);
    hourly.wake();
    again.get_future().wait();
}

TEST_F(Loop, that_is_asked_to_stop_does_so_before_anybody_waits_for_it) {
    std::promise<void> begun, stopped;
    BackgroundLoop hourly = loop([&](const std::stop_token& stop) {
        const std::stop_callback seen{stop, [&] { stopped.set_value(); }};
        begun.set_value();
        while (!stop.stop_requested()) std::this_thread::yield();
        return 1h;
    });
    begun.get_future().wait();
    hourly.request_stop();
    stopped.get_future().wait();
    EXPECT_TRUE(hourly.is_running()) << "its end is still to be waited for";
}

TEST_F(Loop, that_was_woken_during_its_turn_takes_another_at_once) {
    std::promise<void> again, goes_on;
    BackgroundLoop hourly = loop([&](auto&) {
        if (++turns == 1) goes_on.get_future().wait();
        if (turns == 2) again.set_value();
        return 1h;
    });
    hourly.wake();
    goes_on.set_value();
    again.get_future().wait();
}

TEST_F(Loop, without_work_waits_until_it_is_woken_whatever_the_clock_says) {
    std::array<std::promise<void>, 2> taken;
    BackgroundLoop idle = loop([&](auto&) -> std::optional<Duration> {
        taken.at(static_cast<std::size_t>(turns++)).set_value();
        return std::nullopt;
    });
    taken[0].get_future().wait();
    clock.advance(24h);
    EXPECT_EQ(turns, 1);
    idle.wake();
    taken[1].get_future().wait();
}

TEST_F(Loop, logs_what_a_turn_throws_and_tries_again) {
    const BackgroundLoop failing = loop([this](auto&) -> Duration {
        if (++turns == 1) throw 42;
        throw std::runtime_error("no answer");
    });
    clock.wait_for_sleepers(1);
    EXPECT_EQ(log.lines(), std::vector<std::string>{"the test will try again: what is no std::exception"});
    clock.advance(5s);
    EXPECT_EQ(log.wait_for("no answer"), "the test will try again: no answer");
}

TEST_F(Loop, is_told_to_stop_and_waited_for) {
    bool stopped = false;
    {
        std::promise<void> begun;
        const BackgroundLoop busy = loop([&](const std::stop_token& stop) {
            begun.set_value();
            while (!stop.stop_requested()) std::this_thread::yield();
            stopped = true;
            return 1h;
        });
        begun.get_future().wait();
    }
    EXPECT_TRUE(stopped);
}

TEST_F(Loop, ends_in_the_midst_of_a_pause) {
    {
        const BackgroundLoop hourly = loop([this](auto&) { return ++turns, 1h; });
        clock.wait_for_sleepers(1);
    }
    EXPECT_EQ(turns, 1);
}

TEST_F(Loop, has_a_name_that_a_debugger_shows) {
    std::promise<std::string> name;
    const BackgroundLoop named = loop([&](auto&) -> std::optional<Duration> {
        std::array<char, 16> buffer{};
        pthread_getname_np(pthread_self(), buffer.data(), buffer.size());
        name.set_value(buffer.data());
        return std::nullopt;
    });
    EXPECT_EQ(name.get_future().get(), "test-loop");
}

}  // namespace
}  // namespace varve
