#pragma once

#include <varve/core/clock.h>

namespace varve {

struct LocksOptions {
    /// How long a process that falls silent keeps its locks and its places in queues. Heartbeats come at half of it. If
    /// clocks disagree by more than this, locks change hands too early; fenced transactions survive that. They never
    /// change hands too late: whoever waits measures the silence by its own steady clock.
    Duration time_to_live = std::chrono::seconds{10};
    /// Whether heartbeats have a thread; it begins with the first lock. Without it, whoever holds locks calls beat().
    bool heartbeat_thread = true;
};

}  // namespace varve
