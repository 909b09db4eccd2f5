#pragma once

#include <varve/core/clock.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace varve::telemetry {

/// Counts. Threads: any.
using Counter = std::atomic<std::uint64_t>;

/// What a histogram has recorded, as a value.
struct HistogramValue {
    struct Bucket {
        double upper_bound;   ///< seconds, included
        std::uint64_t count;  ///< of those in this bucket, not in smaller ones
    };
    std::array<Bucket, 24> buckets{};  ///< ascending
    std::uint64_t beyond = 0;          ///< that were longer than the last bound
    double sum = 0;                    ///< seconds

    std::uint64_t count() const {
        std::uint64_t all = beyond;
        for (const Bucket& bucket : buckets) all += bucket.count;
        return all;
    }
    /// The bound that a share of them does not exceed, 0 < share <= 1: seconds, infinity beyond the last bound, 0 if
    /// nothing was recorded.
    double quantile(double share) const;
};

/// How long something took, in buckets of 1, 2, 4 … microseconds up to 8.4 s.
///
///     Histogram waits;
///     waits.record(clock.steady_now() - began);
///     double most = waits.value().quantile(0.99);
///
/// Threads: all methods may be called from any thread. What is recorded while `value` reads may be in it or not.
class Histogram {
  public:
    /// `times`: how many of them took so long.
    void record(Duration duration, std::uint64_t times = 1) noexcept;
    HistogramValue value() const noexcept;

  private:
    static constexpr std::size_t bounds = std::tuple_size_v<decltype(HistogramValue::buckets)>;
    std::array<Counter, bounds + 1> counts_{};
    Counter microseconds_{0};
};

}  // namespace varve::telemetry
