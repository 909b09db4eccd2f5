#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

namespace varve {

using Duration = std::chrono::microseconds;
/// A moment in UTC, to the microsecond.
using Time = std::chrono::sys_time<Duration>;

/// The only source of time. Injected, so that a whole cluster runs in one test without waiting
/// (testing/manual_clock.h). Clocks of different processes need not agree: they serve liveness and metadata, never
/// correctness.
///
/// Threads: all methods may be called from any thread.
class Clock {
  public:
    virtual ~Clock() = default;
    virtual Time now() = 0;
    /// Blocks the caller for `duration`, or until `stop` is requested.
    virtual void sleep_for(Duration duration, std::stop_token stop = {}) = 0;

    /// The operating system's clock.
    static Clock& system();
};

/// ISO 8601 in UTC with microseconds: 2026-01-31T12:00:00.000000Z.
std::string to_string(Time time);

/// In seconds, as short as it goes: "0.5 s", "-3 s".
std::string to_string(Duration duration);

/// Reads ISO 8601: a date (its midnight), or a date and time with an optional fraction, 'Z' or an offset as in +02:00.
/// Throws InvalidError that quotes the text.
Time parse_time(std::string_view text);

}  // namespace varve
