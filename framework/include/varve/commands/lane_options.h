#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace varve {

/// Commands on one aggregate in one process queue in its lane: what waits there is decided together, one command after
/// the other on the state in memory, and appended as ONE slot.
struct LaneOptions {
    std::size_t queue_max = 10'000;  ///< commands in one lane, those being decided included; at least 1
    /// What becomes of one more: its caller waits for room, or gets an OverloadedError.
    enum class WhenFull { wait, refuse };
    WhenFull when_full = WhenFull::wait;
    std::size_t batch_max = 1000;  ///< commands that go into one slot at most; 1: each gets a slot of its own
    /// That work off what was submitted, made by the first submit. So many lanes wait for the store at the same time.
    std::size_t threads = 16;
};

/// What an application's lanes have counted since it was made. Any thread may read at any time.
struct LaneMetrics {
    using Counter = std::atomic<std::uint64_t>;

    Counter commands{0};  ///< that have ended, however
    Counter batches{0};   ///< that they were in; commands per batch is how much the lanes save
    Counter refused{0};   ///< commands that met a full lane
};

}  // namespace varve
