#pragma once

#include <varve/core/runtime.h>

#include <mutex>
#include <random>

namespace varve::testing {

/// Randomness that one integer fixes: the same seed and the same calls give the same numbers on every platform.
///
///     SeededRandom random{seed};
///     if (random.chance(0.1)) …
///
/// Threads: all methods may be called from any thread; which thread gets which number is then up to the scheduler.
class SeededRandom final : public Random {
  public:
    explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}

    std::uint64_t next() override;
    /// True with this probability; draws nothing if it is 0, so that a fault that is off leaves the rest as it was.
    bool chance(double probability);

  private:
    std::mutex mutex_;
    std::mt19937_64 engine_;  // guarded by mutex_; the standard fixes its sequence
};

}  // namespace varve::testing
