#pragma once

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/type_name.h>
#include <varve/events/event.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace varve {

// How a plain struct is stored as an event, and how an old form of it is still read.
//
// An event's stored name is the name of its type, or its `static constexpr std::string_view name`. When its fields
// change, it keeps the old form as `Previous` and says how to read it; older forms chain:
//
//     struct Deposited {
//         std::int64_t amount_cents;
//         struct Previous { std::int64_t cents; };
//         static Deposited upcast(const Previous& old) { return {.amount_cents = old.cents}; }
//     };
//
// Its schema version is 1 + that of `Previous`; without one it is 1. Events written by a NEWER schema than this program
// knows are a CorruptionError, never guessed at.

template <class Event>
constexpr std::string_view event_name() {
    return stored_name<Event>();
}

namespace detail {

/// In a nested `struct Previous` that name means itself: it has no form before it.
template <class Event>
concept HasPrevious = requires {
    typename Event::Previous;
}
&&!std::same_as<typename Event::Previous, Event>;

template <class Event>
concept HasUpcast = requires(const typename Event::Previous& old) {
    Event::upcast(old);
};

/// Why an event cannot be stored, or an old form of it not read.
template <class Form>
consteval auto refuse_form() {
    if constexpr (RefusedJson<Form>::refused) {
        return RefusedJson<Form>{};
    } else if constexpr (!HasPrevious<Form>) {
        return Fine{};
    } else if constexpr (!HasUpcast<Form>) {
        return Refused<Rule::has_no_upcast, Type<Form>>{};
    } else {
        return refuse_form<typename Form::Previous>();
    }
}
template <class Event>
using RefusedEvent = FirstRefused<RefusedName<Event>, decltype(refuse_form<Event>())>;

}  // namespace detail

/// T can be stored as an event.
template <class T>
concept EventType = !detail::RefusedEvent<T>::refused;

template <class Event>
constexpr int event_schema() {
    if constexpr (detail::HasPrevious<Event>) {
        return 1 + event_schema<typename Event::Previous>();
    } else {
        return 1;
    }
}

template <EventType Event>
EventData encode_event(const Event& event) {
    return {.type = std::string{event_name<Event>()}, .schema = event_schema<Event>(), .data = json::encode(event)};
}
template <class Event, VARVE_WHY(detail::RefusedEvent<Event>)>
requires(!EventType<Event>) EventData encode_event(const Event& event)
VARVE_REFUSED;

namespace detail {
[[noreturn]] void throw_unreadable(const RecordedEvent& recorded, const std::string& why);
[[noreturn]] void throw_unknown_event(const RecordedEvent& recorded, std::vector<std::string> known);
}  // namespace detail

/// Reads an event of one type, upcasting from the schema it was stored in.
template <class Event>
Event decode_event(const RecordedEvent& recorded) {
    constexpr int schema = event_schema<Event>();
    if (recorded.event.schema < schema) {
        if constexpr (schema > 1) return Event::upcast(decode_event<typename Event::Previous>(recorded));
    }
    if (recorded.event.schema != schema) {
        detail::throw_unreadable(recorded, "its schema is version " + std::to_string(recorded.event.schema) +
                                               ", this program knows versions 1 to " + std::to_string(schema));
    }
    Result<Event, json::DecodeError> event = json::decode<Event>(recorded.event.data);
    if (!event) detail::throw_unreadable(recorded, event.error().message);
    return std::move(event).value();
}

namespace detail {

/// Why a variant cannot be that of an aggregate's events.
template <class Variant>
struct RefusedEvents;
template <class... Events>
struct RefusedEvents<std::variant<Events...>> {
    static consteval auto refuse() {
        using Each = FirstRefused<RefusedEvent<Events>...>;
        if constexpr (Each::refused) {
            return Each{};
        } else if constexpr (!all_differ({event_name<Events>()...})) {
            return Refused<Rule::has_equal_events, Type<std::variant<Events...>>>{};
        } else {
            return Fine{};
        }
    }
    static constexpr bool refused = decltype(refuse())::refused;
};

}  // namespace detail

/// One of several events, found by its stored name. CorruptionError, naming stream and version, for any other.
template <class Variant>
struct EventVariant;

template <class... Events>
struct EventVariant<std::variant<Events...>> {
    using Any = std::variant<Events...>;

    static EventData encode(const Any& event) {
        return std::visit([](const auto& one) { return encode_event(one); }, event);
    }

    static Any decode(const RecordedEvent& recorded) {
        std::optional<Any> event;
        const bool known = ((recorded.event.type == event_name<Events>() &&
                             (event.emplace(std::in_place_type<Events>, decode_event<Events>(recorded)), true)) ||
                            ...);
        if (!known) detail::throw_unknown_event(recorded, {std::string{event_name<Events>()}...});
        return std::move(*event);
    }
};

}  // namespace varve
