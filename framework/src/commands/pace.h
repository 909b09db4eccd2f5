#pragma once

#include <varve/core/clock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace varve::detail {

/// Spreads work evenly: not more than so much in a second, counted from when each piece of it began. What was not used
/// is not made up for.
///
///     if (Duration wait = pace.wait(done_so_far, now); wait > Duration::zero()) return wait;
///     // … do the next piece
///
/// Threads: one at a time.
class Pace {
  public:
    /// 0: as much as can be.
    explicit Pace(std::size_t per_second_max) : per_second_max_(per_second_max) {}

    /// Zero: the next piece may begin now.
    Duration wait(std::uint64_t done, SteadyTime now) {
        if (per_second_max_ == 0) return Duration::zero();
        if (done_ && done > *done_) {
            const double seconds = static_cast<double>(done - *done_) / static_cast<double>(per_second_max_);
            ready_ = began_ + std::chrono::ceil<Duration>(std::chrono::duration<double>{seconds});
        }
        done_ = done;
        const Duration left = ready_ - now;
        if (left > Duration::zero()) return left;
        began_ = now;
        return Duration::zero();
    }

  private:
    const std::size_t per_second_max_;
    std::optional<std::uint64_t> done_;  // when it was asked last
    SteadyTime began_{};                 // the last piece
    SteadyTime ready_{};
};

}  // namespace varve::detail
