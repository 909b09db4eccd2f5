#pragma once

#include "transactions/slot.h"

#include <varve/events/event.h>
#include <varve/store/item.h>

#include <string_view>
#include <vector>

namespace varve::events {

// What a committed slot of an aggregate holds besides the protocol's own attributes (transactions/slot.h):
//
//     payload := time events (metadata | commands) [effects]
//     metadata := [command_id] [correlation] [causation] [headers]
//
// `time` is microseconds of Unix time. `events` is JSON text, [{"type":…,"schema":…,"data":{…}}, …]; schema 1 is left
// out. `headers` is JSON text, an object of strings. The other three are text. Where the events are those of several
// commands with different metadata, `commands` has them instead: JSON text,
// [{"events":n,"command_id":…,"correlation":…,"causation":…,"headers":{…}}, …], the first n events are the first
// command's, and so on; what is empty is left out.
//
// The effects of a transaction are in the slot of the aggregate that got its first event; if there is none, in the slot
// that decides, which then has a payload without events. `effects` is JSON text in the form of `events`. Where there
// are `commands`, each effect has the number of its own: "command":n, from 0.

/// "account" of "account-alice".
constexpr std::string_view aggregate_of(std::string_view stream) {
    return stream.substr(0, stream.find('-'));
}

/// What one command has decided, and what is stored beside it.
struct CommandEvents {
    std::vector<EventData> events;
    Metadata metadata;
    std::vector<EventData> effects = {};
};

store::Item encode_payload(const std::vector<CommandEvents>& commands, Time time);
/// Those of one command.
store::Item encode_payload(std::vector<EventData> events, Metadata metadata, Time time);

/// The events of a slot, in order. CorruptionError naming stream and version if they cannot be read.
std::vector<RecordedEvent> decode_payload(const std::string& stream, Version version,
                                          const transactions::Committed& content);
/// The effects in a slot. An older version kept them on the slot that decides, perhaps without time and metadata, which
/// then are empty. CorruptionError if they cannot be read.
std::vector<Effect> decode_effects(const std::string& stream, Version version, const transactions::Committed& content);

}  // namespace varve::events
