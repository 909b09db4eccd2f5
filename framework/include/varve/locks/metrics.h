#pragma once

#include <atomic>
#include <cstdint>

namespace varve::locks {

/// What one `Locks` has counted since it was made. Any thread may read at any time.
struct Metrics {
    using Counter = std::atomic<std::uint64_t>;

    Counter acquired{0};      ///< times a lock was entered
    Counter gave_up{0};       ///< acquisitions whose wait was over before their turn
    Counter lost{0};          ///< locks that were lost while they were held
    Counter cleaned{0};       ///< expired rows of others removed from queues
    Counter waiting{0};       ///< acquisitions that are under way now
    Counter holding{0};       ///< locks that are held now
    Counter queue_length{0};  ///< acquisitions that the last one to queue up found ahead of it
    Counter waited_us{0};     ///< microseconds, for all that were acquired
    Counter held_us{0};       ///< microseconds, of all that are no longer held
    Counter heartbeats{0};    ///< times a lock's expiry was moved
};

}  // namespace varve::locks
