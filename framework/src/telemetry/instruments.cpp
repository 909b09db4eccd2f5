#include <varve/telemetry/instruments.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace varve::telemetry {

double HistogramValue::quantile(double share) const {
    const auto all = count();
    if (all == 0) return 0;
    std::uint64_t seen = 0;
    for (const Bucket& bucket : buckets) {
        seen += bucket.count;
        if (static_cast<double>(seen) >= share * static_cast<double>(all)) return bucket.upper_bound;
    }
    return std::numeric_limits<double>::infinity();
}

void Histogram::record(Duration duration, std::uint64_t times) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
    // Bucket i holds what is at most 2^i.
    const std::size_t bucket = us <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(us - 1));
    counts_[std::min(bucket, bounds)].fetch_add(times, std::memory_order_relaxed);
    microseconds_.fetch_add(us * times, std::memory_order_relaxed);
}

HistogramValue Histogram::value() const noexcept {
    HistogramValue value;
    for (std::size_t i = 0; i < bounds; ++i) {
        value.buckets[i] = {.upper_bound = static_cast<double>(std::uint64_t{1} << i) / 1e6,
                            .count = counts_[i].load(std::memory_order_relaxed)};
    }
    value.beyond = counts_[bounds].load(std::memory_order_relaxed);
    value.sum = static_cast<double>(microseconds_.load(std::memory_order_relaxed)) / 1e6;
    return value;
}

}  // namespace varve::telemetry
