#pragma once

#include <varve/aggregates/decision.h>
#include <varve/aggregates/snapshots.h>
#include <varve/aggregates/state_bytes.h>
#include <varve/core/named_types.h>
#include <varve/events/event_type.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace varve {

// An aggregate is a plain struct: no base class, no macro, no registration.
//
//     struct Account {
//         static constexpr std::string_view name = "account";       // part of its streams' names: account-<id>
//         using Event = std::variant<Opened, Deposited, Withdrawn>;
//         void apply(const Opened&);                                // one for each event; never fails, decides nothing
//         …
//         Decision<Event> decide(const Deposit&) const;             // one for each command; changes nothing
//         …
//     };
//
// A default-constructed one is the state before the first event. `std::size_t bytes() const` may say how much memory it
// takes (state_bytes.h), `static constexpr SnapshotPolicy snapshots` when to store it (snapshots.h).

namespace detail {

/// The compiler's message names the two types that this is instantiated with.
template <class Aggregate, class Event>
struct aggregate_has_apply_for {
    static_assert(
        requires(Aggregate a, const Event& e) { a.apply(e); },
        "the aggregate has no apply(const Event&) for one of its events; this message's 'aggregate_has_apply_for' "
        "names the two");
    static constexpr bool value = true;
};

template <class Aggregate, class Variant>
struct aggregate_applies_all;
template <class Aggregate, class... Events>
struct aggregate_applies_all<Aggregate, std::variant<Events...>> {
    static constexpr bool value = (aggregate_has_apply_for<Aggregate, Events>::value && ...);
};

template <class Aggregate, class Command>
struct aggregate_has_decide_for {
    static_assert(
        requires(const Aggregate& a, const Command& c) {
            { a.decide(c) } -> std::convertible_to<Decision<typename Aggregate::Event>>;
        },
        "the aggregate has no decide(const Command&) const that returns Decision<Event>; this message's "
        "'aggregate_has_decide_for' names the two");
    static constexpr bool value = true;
};

template <class T>
constexpr bool check_aggregate() {
    static_assert(std::is_default_constructible_v<T> && std::is_copy_constructible_v<T>,
                  "an aggregate needs a default constructor (the state before any event) and a copy constructor");
    static_assert(NamesItself<T>, "an aggregate needs 'static constexpr std::string_view name'");
    static_assert(
        requires { typename T::Event; }, "an aggregate needs 'using Event = std::variant<…>' of its events");
    static_assert(is_a<std::variant, typename T::Event>, "an aggregate's Event is a std::variant of its events");
    return aggregate_applies_all<T, typename T::Event>::value;
}

}  // namespace detail

/// Checked where an aggregate is used; what is missing is named by a static_assert.
template <class T>
concept Aggregate = detail::check_aggregate<T>();

/// An aggregate's type with its type erased: what the framework's compiled code needs of it.
struct AggregateType {
    NamedType named;
    std::shared_ptr<void> (*make)();
    std::shared_ptr<void> (*copy)(const void* state);
    void (*apply)(void* state, const RecordedEvent& event);
    std::size_t (*bytes)(const void* state);  ///< that it takes in memory (state_bytes.h)
    const SnapshotType* snapshots;            ///< null: it has none (snapshots.h)
};

template <Aggregate A>
const AggregateType& aggregate_type() {
    static const AggregateType type{
        .named = NamedType::of<A>(A::name),
        .make = [] { return std::static_pointer_cast<void>(std::make_shared<A>()); },
        .copy =
            [](const void* state) {
                return std::static_pointer_cast<void>(std::make_shared<A>(*static_cast<const A*>(state)));
            },
        .apply =
            [](void* state, const RecordedEvent& recorded) {
                std::visit([state](const auto& event) { static_cast<A*>(state)->apply(event); },
                           EventVariant<typename A::Event>::decode(recorded));
            },
        .bytes = [](const void* state) { return detail::state_bytes(*static_cast<const A*>(state)); },
        .snapshots = detail::snapshot_type<A>(),
    };
    return type;
}

/// The stream of one aggregate: "account-alice". InvalidError if the type's name is empty, begins with '$' or has a
/// '-', or if the id is empty.
std::string stream_name(const AggregateType& type, std::string_view id);
/// The id in a stream's name: "alice".
std::string_view id_of(std::string_view stream);

}  // namespace varve
