#include <varve/testing/recorded_log.h>

#include <thread>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using Lines = std::vector<std::string>;

TEST(RecordedLog, keeps_every_line_until_it_is_cleared) {
    RecordedLog log;
    log.write(LogLevel::debug, "one");
    log.write(LogLevel::error, "two");
    EXPECT_EQ(log.lines(), (Lines{"one", "two"}));
    EXPECT_EQ(log.text(), "one\ntwo\n");
    log.clear();
    EXPECT_EQ(log.lines(), Lines{});
}

TEST(RecordedLog, waits_for_what_another_thread_says) {
    RecordedLog log;
    log.write(LogLevel::info, "nothing");
    const std::jthread other{[&] { log.write(LogLevel::warning, "the sweeper will try again: no answer"); }};
    EXPECT_EQ(log.wait_for("try again"), "the sweeper will try again: no answer");
}

}  // namespace
}  // namespace varve::testing
