#pragma once

#include "transactions/slot.h"

#include <varve/events/event.h>
#include <varve/store/item.h>

#include <string_view>
#include <vector>

namespace varve::events {

// What a committed slot of an aggregate holds besides the protocol's own attributes (transactions/slot.h):
//
//     payload := time events (metadata | commands)
//     metadata := [command_id] [correlation] [causation] [headers]
//
// `time` is microseconds of Unix time. `events` is JSON text, [{"type":…,"schema":…,"data":{…}}, …]; schema 1 is left
// out. `headers` is JSON text, an object of strings. The other three are text. Where the events are those of several
// commands with different metadata, `commands` has them instead: JSON text,
// [{"events":n,"command_id":…,"correlation":…,"causation":…,"headers":{…}}, …], the first n events are the first
// command's, and so on; what is empty is left out.
//
// The slot that decides a transaction with effects has them too, in the form of `events`:
//
//     effects

/// "account" of "account-alice".
constexpr std::string_view aggregate_of(std::string_view stream) {
    return stream.substr(0, stream.find('-'));
}

/// The events that one command has decided, and what is stored beside them.
struct CommandEvents {
    std::vector<EventData> events;
    Metadata metadata;
};

store::Item encode_payload(const std::vector<CommandEvents>& commands, Time time);
/// Those of one command.
store::Item encode_payload(std::vector<EventData> events, Metadata metadata, Time time);

store::Item encode_effects(const std::vector<EventData>& effects);

/// The events of a slot, in order. CorruptionError naming stream and version if they cannot be read.
std::vector<RecordedEvent> decode_payload(const std::string& stream, Version version,
                                          const transactions::Committed& content);
/// The effects in a slot; none if it decides no transaction with effects. CorruptionError if they cannot be read.
std::vector<Effect> decode_effects(const std::string& stream, Version version, const transactions::Committed& content);

}  // namespace varve::events
