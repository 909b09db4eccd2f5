#include <varve/core/clock.h>
#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/spdlog/log.h>

#include <chrono>
#include <utility>

#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace varve::spdlog {
namespace {

::spdlog::level::level_enum to_spdlog(LogLevel level) {
    switch (level) {
        case LogLevel::debug: return ::spdlog::level::debug;
        case LogLevel::info: return ::spdlog::level::info;
        case LogLevel::warning: return ::spdlog::level::warn;
        case LogLevel::error: return ::spdlog::level::err;
    }
    return ::spdlog::level::err;
}

/// A message of several lines would look like several messages.
std::string on_one_line(std::string_view text) {
    std::string line;
    for (const char c : text) {
        if (c == '\n') {
            line += "\\n";
        } else {
            line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
        }
    }
    return line;
}

class Lines final : public ::spdlog::formatter {
  public:
    explicit Lines(Format format) : format_(format) {}

    void format(const ::spdlog::details::log_msg& message, ::spdlog::memory_buf_t& to) override {
        const std::string time = to_string(std::chrono::time_point_cast<Duration>(message.time));
        const ::spdlog::string_view_t spelled = ::spdlog::level::to_string_view(message.level);
        const std::string_view level{spelled.data(), spelled.size()};
        const std::string_view logger{message.logger_name.data(), message.logger_name.size()};
        const std::string_view payload{message.payload.data(), message.payload.size()};
        const std::string line =
            format_ == Format::json
                ? R"({"time":")" + time + R"(","level":")" + std::string{level} + R"(","logger":)" +
                      json::quote_lossy(logger) + R"(,"message":)" + json::quote_lossy(payload) + "}\n"
                : time + " " + std::string{level} + " " + on_one_line(logger) + ": " + on_one_line(payload) + "\n";
        to.append(line.data(), line.data() + line.size());
    }
    std::unique_ptr<::spdlog::formatter> clone() const override { return std::make_unique<Lines>(format_); }

  private:
    const Format format_;
};

}  // namespace

Log::Log(std::shared_ptr<::spdlog::logger> logger) : logger_(std::move(logger)) {
    if (!logger_) throw InvalidError("a log that passes on to spdlog needs a logger, and was given none");
}

void Log::write(LogLevel level, std::string_view message) {
    logger_->log(to_spdlog(level), ::spdlog::string_view_t{message.data(), message.size()});
}

void set_format(::spdlog::logger& logger, Format format) {
    logger.set_formatter(std::make_unique<Lines>(format));
}

std::unique_ptr<Log> make_log(const std::string& name, LogLevel from, Format format) {
    const auto logger = std::make_shared<::spdlog::logger>(name, std::make_shared<::spdlog::sinks::stderr_sink_mt>());
    logger->set_level(to_spdlog(from));
    logger->flush_on(::spdlog::level::trace);
    set_format(*logger, format);
    return std::make_unique<Log>(logger);
}

}  // namespace varve::spdlog
