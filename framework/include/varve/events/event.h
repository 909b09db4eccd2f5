#pragma once

#include <varve/core/clock.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace varve {

/// Where in its stream a slot is: 1, 2, 3 … without holes. 0: before the first.
using Version = std::int64_t;

/// What is stored beside events and is not part of them. All events of one command share it.
struct Metadata {
    std::string command_id = {};   ///< of the command that decided them; empty if it had none
    std::string correlation = {};  ///< the conversation that they belong to; flows from command to command
    std::string causation = {};    ///< the id of the event or command that led to this one
    std::map<std::string, std::string> headers = {};  ///< the user's own

    bool operator==(const Metadata&) const = default;
};

/// An event to be stored: its name, the version of its schema (1, 2, …) and its fields as JSON text.
struct EventData {
    std::string type;
    int schema = 1;
    std::string data;

    bool operator==(const EventData&) const = default;
};

/// An event as it was stored.
struct RecordedEvent {
    std::string stream;
    Version version = 0;    ///< of its slot
    std::size_t index = 0;  ///< within its slot, from 0
    std::string id;         ///< unique: the slot's write id, the stream and the index, with colons between
    Time time;              ///< when it was decided, by the clock of whoever did
    EventData event;
    std::shared_ptr<const Metadata> metadata;
    std::uint64_t position = 0;  ///< of its slot in the order of all slots, for who follows them; 0: read otherwise
};

/// A stream, or the part of it that was asked for.
struct Stream {
    std::vector<RecordedEvent> events;  ///< in order
    Version head = 0;                   ///< the last committed version of the whole stream as it was read; 0: none
};

enum class Order { oldest_first, newest_first };

/// Some slots of a stream, and where it goes on.
struct StreamPage {
    std::vector<RecordedEvent> events;  ///< in the order that was asked for, slot by slot
    std::string next;                   ///< for PageOptions::next; empty: there are no more yet
};

/// Something to be done outside the store because a transaction has committed.
struct Effect {
    std::string id;    ///< unique: the transaction's id, a colon, the index: an idempotency key for whoever receives it
    EventData effect;  ///< its name and fields
    /// When it was decided, by the clock of whoever did; Time{} where an earlier version has not stored that.
    Time time = {};
    std::shared_ptr<const Metadata> metadata;  ///< of the command that decided it; never null, empty if it is not known
};

}  // namespace varve
