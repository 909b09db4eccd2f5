#include <varve/core/clock.h>
#include <varve/core/error.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace std::chrono_literals;

TEST(Clock, a_time_is_written_and_read_back) {
    const Time time = parse_time("2026-01-31T12:34:56.000789Z");
    EXPECT_EQ(to_string(time), "2026-01-31T12:34:56.000789Z");
    EXPECT_EQ(parse_time(to_string(time)), time);
}

TEST(Clock, the_first_and_the_last_time_of_all_are_written_too) {
    EXPECT_EQ(to_string(Time::min()), "-290308-12-21T19:59:05.224192Z");
    EXPECT_EQ(to_string(Time::max()), "294247-01-10T04:00:54.775807Z");
}

TEST(Clock, a_date_alone_is_its_midnight) {
    EXPECT_EQ(to_string(parse_time("2024-02-29")), "2024-02-29T00:00:00.000000Z");
}

TEST(Clock, an_offset_is_taken_off) {
    EXPECT_EQ(parse_time("2026-01-31T12:00:00+02:00"), parse_time("2026-01-31T10:00:00Z"));
    EXPECT_EQ(parse_time("2026-01-31T12:00:00-0130"), parse_time("2026-01-31T13:30:00Z"));
}

TEST(Clock, what_is_no_time_is_quoted) {
    for (const char* text : {"", "tomorrow", "2026-13-01", "2026-02-30", "2026-01-31T", "2026-01-31T25:00:00Z",
                             "2026-01-31T12:00:00Zx", "2026-01-31T12:00:00.Z", "2026-1-31", "-026-01-31"}) {
        try {
            parse_time(text);
            ADD_FAILURE() << text;
        } catch (const InvalidError& error) {
            EXPECT_NE(std::string{error.what()}.find("'" + std::string{text} + "'"), std::string::npos);
        }
    }
}

TEST(Clock, a_duration_is_told_in_seconds_as_short_as_it_goes) {
    EXPECT_EQ(to_string(Duration{1500ms}), "1.5 s");
    EXPECT_EQ(to_string(Duration{-3s}), "-3 s");
    EXPECT_EQ(to_string(Duration{100s}), "100 s");
    EXPECT_EQ(to_string(Duration{0}), "0 s");
    EXPECT_EQ(to_string(Duration{1}), "0.000001 s");
}

TEST(Clock, a_stop_request_ends_a_sleep) {
    std::stop_source stop;
    stop.request_stop();
    const Time before = Clock::system().now();
    Clock::system().sleep_for(1h, stop.get_token());
    EXPECT_LT(Clock::system().now() - before, 10min);
}

TEST(Clock, a_sleep_for_ever_ends_when_it_is_asked_to) {
    std::stop_source stop;
    std::atomic<bool> asked = false;
    const std::jthread asks{[&] {
        Clock::system().sleep_for(20ms);
        asked = true;
        stop.request_stop();
    }};
    Clock::system().sleep_for(Duration::max(), stop.get_token());
    EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace varve
