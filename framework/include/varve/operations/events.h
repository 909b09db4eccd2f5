#pragma once

#include <varve/commands/application.h>
#include <varve/events/event.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace varve::operations {

/// A piece of all events that were ever committed, in their order.
struct EventsPage {
    std::vector<RecordedEvent> events;  ///< with their positions
    std::uint64_t end = 0;              ///< up to here everything has been read: `after` of the next page
    bool is_last = false;               ///< there was nothing more
};

/// What follows the position `after`, at most `slots_max` slots: for who looks at the events of a whole store a page at
/// a time, keeps no place in it, and runs no thread for it. Streams of the framework's own are left out.
///
/// Errors: ConfigError for a store without a feed; those of the store; CorruptionError naming the slot, if the next one
/// cannot be read. Threads: any, of both.
EventsPage events_after(Application& application, std::uint64_t after, std::size_t slots_max);

/// Up to where there are events now.
std::uint64_t end_of_events(Application& application);

}  // namespace varve::operations
