#include "commands/application_parts.h"
#include "feed/feed.h"

#include <varve/operations/events.h>

#include <utility>

namespace varve::operations {

EventsPage events_after(Application& application, std::uint64_t after, std::size_t slots_max) {
    const feed::Feed feed{*detail::parts_of(application).store};
    feed::Batch batch = feed.read(after, slots_max);
    return {.events = std::move(batch.events), .end = batch.end, .is_last = batch.is_last};
}

std::uint64_t end_of_events(Application& application) {
    return feed::Feed{*detail::parts_of(application).store}.end();
}

}  // namespace varve::operations
