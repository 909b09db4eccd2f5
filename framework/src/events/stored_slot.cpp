#include "events/stored_slot.h"

#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/suggest.h>
#include <varve/events/event_type.h>

#include <algorithm>
#include <limits>

namespace varve {
namespace events {
namespace {

constexpr const char* time_attribute = "time";
constexpr const char* events_attribute = "events";
using transactions::effects_attribute;
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

/// One entry of `effects`.
struct StoredEffect {
    std::string type;
    std::optional<int> schema;
    json::Raw data;
    std::optional<std::int64_t> command;
};

template <class Stored>
Stored& add(std::vector<Stored>& all, const EventData& data) {
    Stored& one = all.emplace_back();
    one.type = data.type;
    if (data.schema != 1) one.schema = data.schema;
    one.data = {data.data};
    return one;
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
bool well_formed(const auto& stored) {
    return std::ranges::all_of(stored, [](const auto& one) {
        return !one.type.empty() && one.schema.value_or(1) >= 1 && one.schema.value_or(1) <= schema_max;
    });
}

}  // namespace

store::Item encode_payload(std::vector<EventData> events, Metadata metadata, Time time) {
    return encode_payload(std::vector<CommandEvents>{{std::move(events), std::move(metadata)}}, time);
}

store::Item encode_payload(const std::vector<CommandEvents>& commands, Time time) {
    const Metadata& metadata = commands.front().metadata;
    const bool share_metadata =
        std::ranges::all_of(commands, [&](const CommandEvents& one) { return one.metadata == metadata; });
    std::vector<StoredEvent> events;
    std::vector<StoredEffect> effects;
    std::vector<StoredCommand> list;
    for (const CommandEvents& command : commands) {
        for (const EventData& event : command.events) add(events, event);
        for (const EventData& effect : command.effects) {
            StoredEffect& stored = add(effects, effect);
            if (!share_metadata) stored.command = static_cast<std::int64_t>(list.size());
        }
        if (!share_metadata) list.push_back(to_stored(command));
    }
    store::Item item{{time_attribute, time.time_since_epoch().count()}, {events_attribute, json::encode(events)}};
    if (!effects.empty()) item.emplace(effects_attribute, json::encode(effects));
    if (!share_metadata) {
        item.emplace(commands_attribute, json::encode(list));
        return item;
    }
    if (!metadata.command_id.empty()) item.emplace(command_attribute, metadata.command_id);
    if (!metadata.correlation.empty()) item.emplace(correlation_attribute, metadata.correlation);
    if (!metadata.causation.empty()) item.emplace(causation_attribute, metadata.causation);
    if (!metadata.headers.empty()) item.emplace(headers_attribute, json::encode(metadata.headers));
    return item;
}

namespace {

/// What a slot says of the commands whose events and effects it has.
struct DecodedCommands {
    struct One {
        std::int64_t events;
        std::shared_ptr<const Metadata> metadata;
    };
    std::vector<One> all;
    bool are_listed = false;  ///< else there is one, and it has all events
};

/// Reads attributes of one slot.
struct Reading {
    const std::string& stream;
    const Version version;
    const store::Item& payload;
    const store::Key key = transactions::slot_key(stream, version);

    [[noreturn]] void unreadable(const std::string& what, const std::string& why) const {
        throw CorruptionError(what + "version " + std::to_string(version) + " of stream '" + stream +
                              "' cannot be read: " + why);
    }
    [[noreturn]] void unreadable(const std::string& why) const { unreadable("", why); }
    const std::string* text(const char* name) const { return transactions::text_of(key, payload, name); }
    std::optional<Time> time() const {
        const std::int64_t* time =
            transactions::integer_of(key, payload, time_attribute, {0, transactions::microseconds_max});
        return time != nullptr ? std::optional{Time{Duration{*time}}} : std::nullopt;
    }
    template <class T>
    T decode(const std::string& text, const std::string& what) const {
        auto decoded = json::decode<T>(text);
        if (!decoded) unreadable(what + decoded.error().message);
        return std::move(*decoded);
    }

    DecodedCommands commands() const {
        DecodedCommands found;
        const auto add = [&](StoredCommand&& one) {
            found.all.push_back({one.events, std::make_shared<const Metadata>(to_metadata(std::move(one)))});
        };
        if (const std::string* list = text(commands_attribute)) {
            for (const char* name :
                 {command_attribute, correlation_attribute, causation_attribute, headers_attribute}) {
                if (payload.contains(name)) unreadable(std::string{"it has commands and '"} + name + "'");
            }
            for (StoredCommand& one : decode<std::vector<StoredCommand>>(*list, "commands: ")) {
                if (one.events < 0) unreadable("commands: one has a negative number of events");
                add(std::move(one));
            }
            found.are_listed = true;
            return found;
        }
        const auto text_or_empty = [&](const char* name) {
            const std::string* there = text(name);
            return there ? *there : std::string{};
        };
        StoredCommand only{.events = std::numeric_limits<std::int64_t>::max(),
                           .command_id = text_or_empty(command_attribute),
                           .correlation = text_or_empty(correlation_attribute),
                           .causation = text_or_empty(causation_attribute),
                           .headers = {}};
        if (const std::string* headers = text(headers_attribute))
            only.headers = decode<std::map<std::string, std::string>>(*headers, "headers: ");
        add(std::move(only));
        return found;
    }
};

EventData to_data(auto&& stored) {
    return {std::move(stored.type), stored.schema.value_or(1), std::move(stored.data.text)};
}

}  // namespace

std::vector<RecordedEvent> decode_payload(const std::string& stream, Version version,
                                          const transactions::Committed& content) {
    const Reading slot{stream, version, content.payload};
    const std::string* text = slot.text(events_attribute);
    const std::optional<Time> time = slot.time();
    if (text == nullptr || !time) slot.unreadable("it has no events or no time");
    auto stored = slot.decode<std::vector<StoredEvent>>(*text, "");
    if (!well_formed(stored)) slot.unreadable("an event has no type, or its schema is no number from 1 on");
    const DecodedCommands commands = slot.commands();
    std::vector<RecordedEvent> events;
    for (const auto& [listed, metadata] : commands.all) {
        const auto left = static_cast<std::int64_t>(stored.size() - events.size());
        if (commands.are_listed && listed > left) slot.unreadable("commands: it has fewer events");
        for (std::int64_t count = std::min(listed, left); count > 0; --count) {
            const std::size_t index = events.size();
            events.push_back({.stream = stream,
                              .version = version,
                              .index = index,
                              .id = content.write_id + ":" + stream + ":" + std::to_string(index),
                              .time = *time,
                              .event = to_data(std::move(stored[index])),
                              .metadata = metadata});
        }
    }
    if (events.size() != stored.size()) slot.unreadable("commands: it has more events");
    return events;
}

std::vector<Effect> decode_effects(const std::string& stream, Version version, const transactions::Committed& content) {
    const Reading slot{stream, version, content.payload};
    const std::string* text = slot.text(effects_attribute);
    if (text == nullptr) return {};
    const auto unreadable = [&](const std::string& why) { slot.unreadable("the effects at ", why); };
    auto stored = json::decode<std::vector<StoredEffect>>(*text);
    if (!stored) unreadable(stored.error().message);
    if (!well_formed(*stored)) unreadable("one has no type, or its schema is no number from 1 on");
    const DecodedCommands commands = slot.commands();
    const Time time = slot.time().value_or(Time{});
    static const auto not_known = std::make_shared<const Metadata>();
    std::vector<Effect> effects;
    for (StoredEffect& one : *stored) {
        const std::int64_t command = one.command.value_or(commands.are_listed ? -1 : 0);
        const auto known = static_cast<std::int64_t>(commands.all.size());
        if (one.command && (!commands.are_listed || command < 0 || command >= known))
            unreadable("one is of a command that is not there");
        effects.push_back(
            {.id = content.write_id + ":" + std::to_string(effects.size()),
             .effect = to_data(std::move(one)),
             .time = time,
             .metadata = command < 0 ? not_known : commands.all[static_cast<std::size_t>(command)].metadata});
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
