#pragma once

#include <atomic>
#include <cstdint>

namespace varve {

/// What an application's lanes have counted since it was made. Any thread may read at any time.
struct LaneMetrics {
    using Counter = std::atomic<std::uint64_t>;

    Counter commands{0};  ///< that have ended, however
    Counter batches{0};   ///< that they were in; commands per batch is how much the lanes save
    Counter refused{0};   ///< commands that met a full lane
};

}  // namespace varve
