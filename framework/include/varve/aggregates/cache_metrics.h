#pragma once

#include <atomic>
#include <cstdint>

namespace varve::aggregates {

/// What the cache of aggregates' last states has counted since it was made. Any thread may read at any time.
struct CacheMetrics {
    using Counter = std::atomic<std::uint64_t>;

    Counter hits{0};     ///< times a state was there when a command or a load began
    Counter misses{0};   ///< times it was not
    Counter evicted{0};  ///< states dropped to make room
    Counter entries{0};  ///< states there now
    Counter bytes{0};    ///< what these take now
};

}  // namespace varve::aggregates
