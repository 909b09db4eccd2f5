#include <varve/core/error.h>
#include <varve/spdlog/log.h>

#include <regex>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

namespace varve {
namespace {

struct SpdlogLog : ::testing::Test {
    std::ostringstream out;
    std::shared_ptr<::spdlog::logger> logger =
        std::make_shared<::spdlog::logger>("bank", std::make_shared<::spdlog::sinks::ostream_sink_mt>(out));
    spdlog::Log log{logger};

    std::string without_time() const { return std::regex_replace(out.str(), std::regex{time}, "TIME"); }
    static constexpr const char* time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)";
};

TEST_F(SpdlogLog, writes_each_level_under_its_name) {
    spdlog::set_format(*logger, spdlog::Format::text);
    logger->set_level(::spdlog::level::debug);
    log.write(LogLevel::debug, "a");
    log.write(LogLevel::info, "b");
    log.write(LogLevel::warning, "c");
    log.write(LogLevel::error, "d");
    EXPECT_EQ(without_time(), "TIME debug bank: a\nTIME info bank: b\nTIME warning bank: c\nTIME error bank: d\n");
}

TEST_F(SpdlogLog, leaves_out_what_is_below_the_loggers_level) {
    logger->set_level(::spdlog::level::err);
    log.write(LogLevel::warning, "not this");
    log.write(LogLevel::error, "this");
    EXPECT_EQ(out.str().find("not"), std::string::npos);
    EXPECT_NE(out.str().find("this"), std::string::npos);
}

TEST_F(SpdlogLog, is_one_line_of_json_for_each_message_whatever_is_in_it) {
    spdlog::set_format(*logger, spdlog::Format::json);
    log.write(LogLevel::warning, "two\nlines, \"quoted\" \\ and {} {0} %v \x01");
    EXPECT_EQ(without_time(),
              R"({"time":"TIME","level":"warning","logger":"bank","message":"two\nlines, \"quoted\" \\ and {} {0} %v )"
              R"(\u0001"})"
              "\n");
}

TEST_F(SpdlogLog, has_what_is_no_utf8_all_the_same) {
    spdlog::set_format(*logger, spdlog::Format::json);
    log.write(LogLevel::error, "caf\xe9 is closed");
    EXPECT_EQ(without_time(), R"({"time":"TIME","level":"error","logger":"bank","message":"caf? is closed"})"
                              "\n");
}

TEST_F(SpdlogLog, is_one_line_of_text_for_each_message_whatever_is_in_it) {
    spdlog::set_format(*logger, spdlog::Format::text);
    log.write(LogLevel::error, "two\nlines {} %v \x1b[31m");
    EXPECT_EQ(without_time(), "TIME error bank: two\\nlines {} %v ?[31m\n");
}

TEST_F(SpdlogLog, that_cannot_be_written_to_does_not_fail_who_logs) {
    struct Full final : ::spdlog::sinks::base_sink<std::mutex> {
        void sink_it_(const ::spdlog::details::log_msg&) override { throw std::runtime_error{"no space"}; }
        void flush_() override {}
    };
    const auto full = std::make_shared<::spdlog::logger>("full", std::make_shared<Full>());
    std::string reported;
    full->set_error_handler([&](const std::string& what) { reported = what; });
    EXPECT_NO_THROW(spdlog::Log{full}.write(LogLevel::error, "a"));
    EXPECT_NE(reported.find("no space"), std::string::npos) << reported;
}

TEST(ASpdlogLog, needs_a_logger) {
    EXPECT_THROW(spdlog::Log{nullptr}, InvalidError);
}

TEST(ASpdlogLog, of_its_own_goes_to_standard_error_at_once) {
    ::testing::internal::CaptureStderr();
    const auto log = spdlog::make_log("bank", LogLevel::info, spdlog::Format::text);
    log->write(LogLevel::debug, "not this");
    log->write(LogLevel::info, "this");
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(std::regex_match(said, std::regex{std::string{SpdlogLog::time} + " info bank: this\n"})) << said;
}

}  // namespace
}  // namespace varve
