#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/suggest.h>
#include <varve/events/event_type.h>
#include <varve/events/stored_slot.h>

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

/// One entry of `events`.
struct StoredEvent {
    std::string type;
    std::optional<int> schema;
    json::Raw data;
};

std::string to_json(const std::vector<EventData>& events) {
    std::vector<StoredEvent> stored;
    for (const EventData& event : events) {
        StoredEvent& one = stored.emplace_back(StoredEvent{event.type, {}, {event.data}});
        if (event.schema != 1) one.schema = event.schema;
    }
    return json::encode(stored);
}

std::string text_or_empty(const store::Item& item, const char* name) {
    const std::string* found = store::text(item, name);
    return found ? *found : std::string{};
}

}  // namespace

store::Item encode_effects(const std::vector<EventData>& effects) {
    return {{effects_attribute, to_json(effects)}};
}

store::Item encode_payload(const std::vector<EventData>& events, const Metadata& metadata, Time time) {
    store::Item item{{time_attribute, time.time_since_epoch().count()}, {events_attribute, to_json(events)}};
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
    const std::string* text = store::text(content.payload, events_attribute);
    const std::int64_t* time = store::integer(content.payload, time_attribute);
    if (text == nullptr || time == nullptr) throw unreadable("it has no events or no time");
    auto stored = json::decode<std::vector<StoredEvent>>(*text);
    if (!stored) throw unreadable(stored.error().message);

    Metadata metadata{.command_id = text_or_empty(content.payload, command_attribute),
                      .correlation = text_or_empty(content.payload, correlation_attribute),
                      .causation = text_or_empty(content.payload, causation_attribute)};
    if (const std::string* headers = store::text(content.payload, headers_attribute)) {
        auto decoded = json::decode<std::map<std::string, std::string>>(*headers);
        if (!decoded) throw unreadable("headers: " + decoded.error().message);
        metadata.headers = std::move(*decoded);
    }
    const auto shared = std::make_shared<const Metadata>(std::move(metadata));
    std::vector<RecordedEvent> events;
    for (StoredEvent& one : *stored) {
        const std::size_t index = events.size();
        events.push_back({.stream = stream,
                          .version = version,
                          .index = index,
                          .id = content.write_id + ":" + stream + ":" + std::to_string(index),
                          .time = Time{Duration{*time}},
                          .event = {std::move(one.type), one.schema.value_or(1), std::move(one.data.text)},
                          .metadata = shared});
    }
    return events;
}

std::vector<Effect> decode_effects(const std::string& stream, Version version, const transactions::Committed& content) {
    const std::string* text = store::text(content.payload, effects_attribute);
    if (text == nullptr) return {};
    auto stored = json::decode<std::vector<StoredEvent>>(*text);
    if (!stored) {
        throw CorruptionError("the effects at version " + std::to_string(version) + " of stream '" + stream +
                              "' cannot be read: " + stored.error().message);
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
