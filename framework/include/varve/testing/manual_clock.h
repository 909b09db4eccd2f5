#pragma once

#include <varve/core/clock.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace varve::testing {

/// A clock that a test moves by hand, so that minutes of leases and retries pass in microseconds.
///
///     ManualClock clock;
///     std::jthread waiter{[&] { clock.sleep_for(30s); }};
///     clock.wait_for_sleepers(1);
///     clock.advance(30s);          // waiter goes on
///     clock.jump(-1h);             // somebody sets the wall clock: no time passes
///
/// In a test of one thread nobody else could move it: with `auto_advance` a sleep moves the clock itself and returns at
/// once.
///
/// Threads: all methods may be called from any thread.
class ManualClock final : public Clock {
  public:
    enum class Mode { blocking, auto_advance };

    /// Where a clock begins unless it is told otherwise: 2026-01-01T00:00:00Z.
    static constexpr Time default_start = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};

    explicit ManualClock(Time start = default_start, Mode mode = Mode::blocking) : now_(start), mode_(mode) {}
    explicit ManualClock(Mode mode) : ManualClock(default_start, mode) {}

    Time now() override;
    SteadyTime steady_now() override;
    /// Until the clock has been moved past the sleep's end, or `stop` is requested. A sleep of nothing returns at once;
    /// one of Duration::max() moves no clock, is ended by `stop` alone, and wait_for_sleepers does not count it.
    void sleep_for(Duration duration, std::stop_token stop = {}) override;

    /// Lets time pass: moves both clocks and wakes whoever has slept long enough. InvalidError for a negative duration.
    void advance(Duration duration);
    /// Sets the wall clock forward, or back, and nothing else: no time passes.
    void jump(Duration duration);
    /// Returns once at least `count` threads sleep, so that an advance after it reaches them.
    void wait_for_sleepers(std::size_t count);

  private:
    std::mutex mutex_;
    std::condition_variable_any moved_;
    std::condition_variable fell_asleep_;
    Time now_;                  // guarded by mutex_
    SteadyTime steady_now_{};   // guarded by mutex_
    std::size_t sleepers_ = 0;  // guarded by mutex_
    const Mode mode_;
};

}  // namespace varve::testing
