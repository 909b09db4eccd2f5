#pragma once

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/type_name.h>
#include <varve/events/event.h>

#include <concepts>
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
//
// An old form may be read as another event of its aggregate, or as several, by an upcast that returns a vector of a
// variant of them. What is stored stays one event with one index: its parts have none of their own, only their order.
//
//     struct Sold {                        // was one event together with Shipped
//         std::int64_t cents = 0;
//         struct Previous { std::int64_t cents = 0; std::string address; };
//         static std::vector<std::variant<Sold, Shipped>> upcast(const Previous& old) {
//             return {Sold{old.cents}, Shipped{old.address}};
//         }
//     };

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

/// What an upcast returns: `found(event)` for each event in it.
template <class T, class Found>
void each_upcast(T&& upcast, Found& found) {
    using Upcast = std::remove_cvref_t<T>;
    if constexpr (is_a<std::vector, Upcast>) {
        for (auto& one : upcast) each_upcast(std::move(one), found);
    } else if constexpr (is_a<std::variant, Upcast>) {
        std::visit([&](auto& one) { found(std::move(one)); }, upcast);
    } else {
        found(std::forward<T>(upcast));
    }
}

/// Reads `recorded` as the form that it was stored in, and `found(event)` for each event that this has become.
template <class Form, class Found>
void read_form(const RecordedEvent& recorded, int newest, Found&& found) {
    constexpr int schema = event_schema<Form>();
    if constexpr (schema > 1) {
        if (recorded.event.schema < schema) {
            using Old = typename Form::Previous;
            return read_form<Old>(recorded, newest, [&]<class Event>(Event&& event) {
                if constexpr (std::same_as<std::remove_cvref_t<Event>, Old>) {
                    each_upcast(Form::upcast(event), found);
                } else {
                    found(std::forward<Event>(event));
                }
            });
        }
    }
    if (recorded.event.schema != schema) {
        throw_unreadable(recorded, "its schema is version " + std::to_string(recorded.event.schema) +
                                       ", this program knows versions 1 to " + std::to_string(newest));
    }
    Result<Form, json::DecodeError> event = json::decode<Form>(recorded.event.data);
    if (!event) throw_unreadable(recorded, event.error().message);
    found(std::move(*event));
}

/// What upcasts of `Form` and of its older forms return, and is neither one of `Events` nor the form that it leads to.
template <class Upcast, class Form, class... Events>
consteval auto refuse_upcast() {
    if constexpr (is_a<std::vector, Upcast>) {
        return refuse_upcast<typename Upcast::value_type, Form, Events...>();
    } else if constexpr (is_a<std::variant, Upcast>) {
        return []<class... Ts>(std::type_identity<std::variant<Ts...>>) {
            return FirstRefused<decltype(refuse_upcast<Ts, Form, Events...>())...>{};
        }(std::type_identity<Upcast>{});
    } else if constexpr ((std::same_as<Upcast, Form> || ... || std::same_as<Upcast, Events>)) {
        return Fine{};
    } else {
        return Refused<Rule::is_no_event_of_it, Type<Upcast>, Type<Form>>{};
    }
}
template <class Form, class... Events>
consteval auto refuse_upcasts() {
    if constexpr (HasPrevious<Form>) {
        using Old = typename Form::Previous;
        using Upcast = std::remove_cvref_t<decltype(Form::upcast(std::declval<const Old&>()))>;
        return FirstRefused<decltype(refuse_upcast<Upcast, Form, Events...>()),
                            decltype(refuse_upcasts<Old, Events...>())>{};
    } else {
        return Fine{};
    }
}

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
            return FirstRefused<decltype(refuse_upcasts<Events, Events...>())...>{};
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

    /// Upcast from the schema that it was stored in: `found(event)` for what it has become, in order. Most become one.
    template <class Found>
    static void decode(const RecordedEvent& recorded, Found&& found) {
        const bool known = ((recorded.event.type == event_name<Events>() &&
                             (detail::read_form<Events>(recorded, event_schema<Events>(), found), true)) ||
                            ...);
        if (!known) detail::throw_unknown_event(recorded, {std::string{event_name<Events>()}...});
    }
    static std::vector<Any> decode(const RecordedEvent& recorded) {
        std::vector<Any> events;
        decode(recorded, [&](auto&& event) { events.emplace_back(std::forward<decltype(event)>(event)); });
        return events;
    }
};

}  // namespace varve
