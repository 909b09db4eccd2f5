#include "events/stored_slot.h"

#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/suggest.h>
#include <varve/events/event_type.h>

#include <algorithm>

namespace varve {
namespace events {
namespace {

constexpr const char* time_attribute = "time";
constexpr const char* events_attribute = "events";
constexpr const char* effects_attribute = "effects";
constexpr const char* command_attribute = "command_id";
constexpr const char* correlation_attribute = "correlation";
constexpr const char* causation_attribute = "causation";
constexpr const char* headers_attribute = "headers";
constexpr const char* commands_attribute = "commands";

/// One entry of `events`.
struct StoredEvent {
    std::string type;
    std::optional<int> schema;
    json::Raw data;
};

/// One entry of `commands`.
struct StoredCommand {
    std::int64_t events = 0;
    std::optional<std::string> command_id;
    std::optional<std::string> correlation;
    std::optional<std::string> causation;
    std::optional<std::map<std::string, std::string>> headers;
};

void add(std::vector<StoredEvent>& stored, const std::vector<EventData>& events) {
    for (const EventData& event : events) {
        StoredEvent& one = stored.emplace_back(StoredEvent{event.type, {}, {event.data}});
        if (event.schema != 1) one.schema = event.schema;
    }
}

StoredCommand to_stored(const CommandEvents& command) {
    const auto unless_empty = [](const auto& value) { return value.empty() ? std::nullopt : std::optional{value}; };
    const Metadata& metadata = command.metadata;
    return {.events = static_cast<std::int64_t>(command.events.size()),
            .command_id = unless_empty(metadata.command_id),
            .correlation = unless_empty(metadata.correlation),
            .causation = unless_empty(metadata.causation),
            .headers = unless_empty(metadata.headers)};
}

Metadata to_metadata(StoredCommand&& stored) {
    return {.command_id = std::move(stored.command_id).value_or(""),
            .correlation = std::move(stored.correlation).value_or(""),
            .causation = std::move(stored.causation).value_or(""),
            .headers = std::move(stored.headers).value_or(std::map<std::string, std::string>{})};
}

constexpr int schema_max = 1'000'000;

/// Whether each has a type, and a schema within its range.
bool well_formed(const std::vector<StoredEvent>& stored) {
    return std::ranges::all_of(stored, [](const StoredEvent& one) {
        return !one.type.empty() && one.schema.value_or(1) >= 1 && one.schema.value_or(1) <= schema_max;
    });
}

}  // namespace

store::Item encode_effects(const std::vector<EventData>& effects) {
    std::vector<StoredEvent> stored;
    add(stored, effects);
    return {{effects_attribute, json::encode(stored)}};
}

store::Item encode_payload(std::vector<EventData> events, Metadata metadata, Time time) {
    return encode_payload(std::vector<CommandEvents>{{std::move(events), std::move(metadata)}}, time);
}

store::Item encode_payload(const std::vector<CommandEvents>& commands, Time time) {
    std::vector<StoredEvent> stored;
    for (const CommandEvents& command : commands) add(stored, command.events);
    store::Item item{{time_attribute, time.time_since_epoch().count()}, {events_attribute, json::encode(stored)}};
    const Metadata& metadata = commands.front().metadata;
    if (!std::ranges::all_of(commands, [&](const CommandEvents& one) { return one.metadata == metadata; })) {
        std::vector<StoredCommand> list;
        for (const CommandEvents& command : commands) list.push_back(to_stored(command));
        item.emplace(commands_attribute, json::encode(list));
        return item;
    }
    if (!metadata.command_id.empty()) item.emplace(command_attribute, metadata.command_id);
    if (!metadata.correlation.empty()) item.emplace(correlation_attribute, metadata.correlation);
    if (!metadata.causation.empty()) item.emplace(causation_attribute, metadata.causation);
    if (!metadata.headers.empty()) item.emplace(headers_attribute, json::encode(metadata.headers));
    return item;
}

std::vector<RecordedEvent> decode_payload(const std::string& stream, Version version,
                                          const transactions::Committed& content) {
    const auto unreadable = [&](const std::string& why) {
        return CorruptionError("version " + std::to_string(version) + " of stream '" + stream +
                               "' cannot be read: " + why);
    };
    const store::Key key = transactions::slot_key(stream, version);
    const auto attribute = [&](const char* name) { return transactions::text_of(key, content.payload, name); };
    const auto text_or_empty = [&](const char* name) {
        const std::string* found = attribute(name);
        return found ? *found : std::string{};
    };
    const std::string* text = attribute(events_attribute);
    const std::int64_t* time =
        transactions::integer_of(key, content.payload, time_attribute, {0, transactions::microseconds_max});
    if (text == nullptr || time == nullptr) throw unreadable("it has no events or no time");
    auto stored = json::decode<std::vector<StoredEvent>>(*text);
    if (!stored) throw unreadable(stored.error().message);
    if (!well_formed(*stored)) throw unreadable("an event has no type, or its schema is no number from 1 on");

    std::vector<StoredCommand> commands;
    if (const std::string* list = attribute(commands_attribute)) {
        for (const char* name : {command_attribute, correlation_attribute, causation_attribute, headers_attribute}) {
            if (content.payload.contains(name)) throw unreadable(std::string{"it has commands and '"} + name + "'");
        }
        auto decoded = json::decode<std::vector<StoredCommand>>(*list);
        if (!decoded) throw unreadable("commands: " + decoded.error().message);
        commands = std::move(*decoded);
    } else {
        StoredCommand& only = commands.emplace_back(StoredCommand{.events = static_cast<std::int64_t>(stored->size()),
                                                                  .command_id = text_or_empty(command_attribute),
                                                                  .correlation = text_or_empty(correlation_attribute),
                                                                  .causation = text_or_empty(causation_attribute),
                                                                  .headers = {}});
        if (const std::string* headers = attribute(headers_attribute)) {
            auto decoded = json::decode<std::map<std::string, std::string>>(*headers);
            if (!decoded) throw unreadable("headers: " + decoded.error().message);
            only.headers = std::move(*decoded);
        }
    }
    std::vector<RecordedEvent> events;
    for (StoredCommand& command : commands) {
        const auto first = static_cast<std::int64_t>(events.size());
        const auto total = static_cast<std::int64_t>(stored->size());
        if (command.events < 0 || command.events > total - first) throw unreadable("commands: it has fewer events");
        const std::int64_t count = command.events;
        const auto metadata = std::make_shared<const Metadata>(to_metadata(std::move(command)));
        for (std::int64_t i = first; i < first + count; ++i) {
            const auto index = static_cast<std::size_t>(i);
            StoredEvent& one = (*stored)[index];
            events.push_back({.stream = stream,
                              .version = version,
                              .index = index,
                              .id = content.write_id + ":" + stream + ":" + std::to_string(index),
                              .time = Time{Duration{*time}},
                              .event = {std::move(one.type), one.schema.value_or(1), std::move(one.data.text)},
                              .metadata = metadata});
        }
    }
    if (events.size() != stored->size()) throw unreadable("commands: it has more events");
    return events;
}

std::vector<Effect> decode_effects(const std::string& stream, Version version, const transactions::Committed& content) {
    const std::string* text =
        transactions::text_of(transactions::slot_key(stream, version), content.payload, effects_attribute);
    if (text == nullptr) return {};
    auto stored = json::decode<std::vector<StoredEvent>>(*text);
    if (!stored) {
        throw CorruptionError("the effects at version " + std::to_string(version) + " of stream '" + stream +
                              "' cannot be read: " + stored.error().message);
    }
    if (!well_formed(*stored)) {
        throw CorruptionError("the effects at version " + std::to_string(version) + " of stream '" + stream +
                              "' cannot be read: one has no type, or its schema is no number from 1 on");
    }
    std::vector<Effect> effects;
    for (StoredEvent& one : *stored) {
        effects.push_back({.id = content.write_id + ":" + std::to_string(effects.size()),
                           .effect = {std::move(one.type), one.schema.value_or(1), std::move(one.data.text)}});
    }
    return effects;
}

}  // namespace events

namespace detail {

void throw_unreadable(const RecordedEvent& recorded, const std::string& why) {
    throw CorruptionError("event '" + recorded.event.type + "' at version " + std::to_string(recorded.version) +
                          " of stream '" + recorded.stream + "' cannot be read: " + why);
}

void throw_unknown_event(const RecordedEvent& recorded, std::vector<std::string> known) {
    throw_unreadable(recorded, "the aggregate has no event of this name" + suggest(recorded.event.type, known));
}

}  // namespace detail
}  // namespace varve
