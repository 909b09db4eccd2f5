#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>

namespace varve {

using Duration = std::chrono::microseconds;
/// A moment in UTC, to the microsecond.
using Time = std::chrono::sys_time<Duration>;
/// A moment on a steady clock, which nobody sets. Only the distance between two moments of one process means anything.
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// The only source of time. It is injected, so that a whole cluster runs in one test without waiting
/// (testing/manual_clock.h). Clocks of different processes need not agree: they serve liveness and metadata, never
/// correctness.
///
/// `now()` is for what is stored or shown. `steady_now()` measures how long something takes and when a wait is over. A
/// wall clock that is set an hour back would make a wait of 3 s last an hour:
///
///     const SteadyTime until = clock.steady_now() + 3s;
///     while (clock.steady_now() < until) ...
///
/// Threads: all methods may be called from any thread.
class Clock {
  public:
    virtual ~Clock() = default;
    /// The wall clock. It may be wrong, and may jump in both directions.
    virtual Time now() = 0;
    /// Never goes back.
    virtual SteadyTime steady_now() = 0;
    /// Blocks the caller for `duration` of the steady clock, or until `stop` is requested.
    virtual void sleep_for(Duration duration, std::stop_token stop = {}) = 0;

    /// When a wait that begins now is over; SteadyTime::max() if it is for ever.
    SteadyTime until(Duration patience) {
        const SteadyTime now = steady_now();
        return patience < SteadyTime::max() - now ? now + patience : SteadyTime::max();
    }

    /// The operating system's clocks.
    static Clock& system();
};

/// ISO 8601 in UTC with microseconds: 2026-01-31T12:00:00.000000Z.
std::string to_string(Time time);

/// In seconds, as short as possible: "0.5 s", "-3 s".
std::string to_string(Duration duration);

/// Reads ISO 8601: a date (its midnight), or a date and time with an optional fraction, 'Z' or an offset as in +02:00.
/// Throws an InvalidError that quotes the text.
Time parse_time(std::string_view text);

}  // namespace varve
