#pragma once

#include <varve/core/clock.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace varve::detail {

/// How many there are in a second, lately: in the last five to ten of them.
///
/// Threads: one at a time.
class Rate {
  public:
    /// What was before does not count.
    void begin(SteadyTime now) {
        before_ = {};
        count_ = 0;
        began_ = now;
    }
    void add(std::size_t count, SteadyTime now) {
        turn_over(now);
        count_ += count;
    }
    /// Nullopt: no time has passed yet.
    std::optional<double> per_second(SteadyTime now) {
        turn_over(now);
        const std::chrono::duration<double> length = before_.length + (now - began_);
        if (length.count() <= 0) return std::nullopt;
        return static_cast<double>(before_.count + count_) / length.count();
    }

  private:
    static constexpr Duration period = std::chrono::seconds{5};

    void turn_over(SteadyTime now) {
        const Duration length = now - began_;
        if (length < period) return;
        // Who was idle for an hour is not slow for an hour after that.
        before_ = length < 2 * period ? Before{count_, length} : Before{0, period};
        count_ = 0;
        began_ = now;
    }

    struct Before {
        std::size_t count = 0;
        Duration length = Duration::zero();
    };
    Before before_;
    std::size_t count_ = 0;
    SteadyTime began_{};
};

}  // namespace varve::detail
