#pragma once

#include <varve/core/runtime.h>

#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace varve::spdlog {

/// How a line looks. Both are one line for each message, whatever is in it, with the time in UTC.
enum class Format {
    text,  ///< 2026-01-31T12:00:00.000000Z warning bank: the sweeper could not …
    json,  ///< {"time":"2026-01-31T12:00:00.000000Z","level":"warning","logger":"bank","message":"the sweeper …"}
};

/// Passes what the framework says on to a logger of spdlog, which decides where it goes and from which level on.
///
///     varve::spdlog::Log log{::spdlog::default_logger()};
///     varve::Application bank{store, {.runtime = {.log = log}}};
///
/// Threads: as the logger: any, unless its sinks say otherwise.
class Log final : public varve::Log {
  public:
    /// InvalidError if there is no logger.
    explicit Log(std::shared_ptr<::spdlog::logger> logger);
    void write(LogLevel level, std::string_view message) override;

  private:
    const std::shared_ptr<::spdlog::logger> logger_;
};

/// From now on the logger's sinks write lines of this form. Before it is used.
void set_format(::spdlog::logger& logger, Format format);

/// A log to standard error, under the program's name, from this level on. What is logged is written before `write`
/// returns.
std::unique_ptr<Log> make_log(const std::string& name, LogLevel from, Format format);

}  // namespace varve::spdlog
