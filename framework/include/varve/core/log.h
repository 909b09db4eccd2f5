#pragma once

#include <string_view>

namespace varve {

enum class LogLevel { debug, info, warning, error };

/// Where the framework's background threads say what they met. Calls that a user makes report by value or exception and
/// log nothing. Messages never contain event data, credentials or whole URLs.
///
/// Threads: write() may be called from any thread.
class Log {
  public:
    virtual ~Log() = default;
    virtual void write(LogLevel level, std::string_view message) = 0;

    /// Warnings and errors to standard error, one line each. The default.
    static Log& standard_error();
};

/// Writes the text that `message()` returns, or nothing where even that fails, as it does without memory: for places
/// that have to go on.
template <class Message>
void try_to_log(Log& log, LogLevel level, const Message& message) noexcept {
    try {
        log.write(level, message());
    } catch (...) {
        // Whoever could be told of it is the one who failed.
    }
}

}  // namespace varve
