#pragma once

#include <varve/events/event.h>
#include <varve/store/item.h>

#include <vector>

namespace varve::events {

// What a committed slot of an aggregate holds besides the protocol's own attributes (transactions/slot.h):
//
//     payload := time events [command_id] [correlation] [causation] [headers]
//
// `time` is microseconds of Unix time. `events` is JSON text, [{"type":…,"schema":…,"data":{…}}, …]; schema 1 is left
// out. `headers` is JSON text, an object of strings. The other three are text.

store::Item encode_payload(const std::vector<EventData>& events, const Metadata& metadata, Time time);

/// The events of a slot, in order. CorruptionError naming stream and version if they cannot be read.
std::vector<RecordedEvent> decode_payload(const std::string& stream, Version version,
                                          const transactions::Committed& content);

}  // namespace varve::events
