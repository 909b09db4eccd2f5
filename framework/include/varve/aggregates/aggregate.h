#pragma once

#include <varve/aggregates/decision.h>
#include <varve/aggregates/snapshots.h>
#include <varve/aggregates/state_bytes.h>
#include <varve/core/type_name.h>
#include <varve/events/event_type.h>

#include <functional>
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
// takes (state_bytes.h). `static constexpr SnapshotPolicy snapshots` may say when to store it (snapshots.h).

namespace detail {

template <class A, class Event>
concept Applies = requires(A a, const Event& event) {
    a.apply(event);
};

template <class A, class Variant>
struct RefusedApply;
template <class A, class... Events>
struct RefusedApply<A, std::variant<Events...>> {
    template <class Event>
    using One = std::conditional_t<Applies<A, Event>, Fine, Refused<Rule::has_no_apply, Type<Event>, Type<A>>>;
    using First = FirstRefused<One<Events>...>;
};

template <class A>
consteval auto refuse_snapshots() {
    if constexpr (!requires { A::snapshots; }) {
        return Fine{};
    } else if constexpr (!std::same_as<decltype(&A::snapshots), const SnapshotPolicy*>) {
        return Refused<Rule::has_bad_snapshots, Type<A>>{};
    } else if constexpr (A::snapshots.every_slots <= 0 && A::snapshots.every_bytes == 0 &&
                         A::snapshots.load_time_max <= Duration::zero()) {
        return Refused<Rule::has_snapshots_never, Type<A>>{};
    } else {
        return RefusedJson<A>{};
    }
}

template <class A>
consteval auto refuse_aggregate() {
    if constexpr (!std::is_default_constructible_v<A> || !std::is_copy_constructible_v<A>) {
        return Refused<Rule::has_no_default, Type<A>>{};
    } else if constexpr (!HasStaticName<A>) {
        return Refused<Rule::has_no_name, Type<A>>{};
    } else if constexpr (!HasConstantName<A>) {
        return Refused<Rule::has_bad_name, Type<A>>{};
    } else if constexpr (!requires { typename A::Event; }) {
        return Refused<Rule::has_no_events, Type<A>>{};
    } else if constexpr (!is_a<std::variant, typename A::Event>) {
        return Refused<Rule::has_bad_events, Type<A>>{};
    } else if constexpr (RefusedEvents<typename A::Event>::refused) {
        return RefusedEvents<typename A::Event>::refuse();
    } else {
        return FirstRefused<typename RefusedApply<A, typename A::Event>::First, decltype(refuse_snapshots<A>())>{};
    }
}
template <class A>
using RefusedAggregate = decltype(refuse_aggregate<A>());

template <class A, class Command>
consteval auto refuse_command() {
    if constexpr (RefusedAggregate<A>::refused) {
        return RefusedAggregate<A>{};
    } else if constexpr (!requires(const A& a, const Command& command) {
                             { a.decide(command) } -> std::convertible_to<Decision<typename A::Event>>;
                         }) {
        return Refused<Rule::has_no_decide, Type<Command>, Type<A>>{};
    } else {
        return Fine{};
    }
}
template <class A, class Command>
using RefusedCommand = decltype(refuse_command<A, Command>());

}  // namespace detail

/// T has all that an aggregate needs. Where a type lacks something, the compiler says what.
template <class T>
concept Aggregate = !detail::RefusedAggregate<T>::refused;

/// The aggregate A decides on the command.
template <class A, class Command>
concept Decides = !detail::RefusedCommand<A, Command>::refused;

/// An aggregate's type, erased: what the framework's compiled code needs to know of it.
struct AggregateType {
    NamedType named;
    std::shared_ptr<void> (*make)();
    std::shared_ptr<void> (*copy)(const void* state);
    void (*apply)(void* state, const RecordedEvent& event);
    /// Calls `found` for each event of the aggregate's variant that the stored one is read as: most often that is one.
    void (*each_event)(const RecordedEvent& event, const std::function<void(const void* event)>& found);
    std::size_t (*bytes)(const void* state);  ///< what a state takes in memory (state_bytes.h)
    const SnapshotType* snapshots;            ///< null: no snapshots (snapshots.h)
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
                EventVariant<typename A::Event>::decode(
                    recorded, [state](const auto& event) { static_cast<A*>(state)->apply(event); });
            },
        .each_event =
            [](const RecordedEvent& recorded, const std::function<void(const void*)>& found) {
                for (const typename A::Event& event : EventVariant<typename A::Event>::decode(recorded)) found(&event);
            },
        .bytes = [](const void* state) { return detail::state_bytes(*static_cast<const A*>(state)); },
        .snapshots = detail::snapshot_type<A>(),
    };
    return type;
}

/// The stream of one aggregate: "account-alice". InvalidError if the type's name is empty, begins with '$' or contains
/// a '-', or if the id is empty.
std::string stream_name(const AggregateType& type, std::string_view id);
/// The id in a stream's name: "alice".
std::string_view id_of(std::string_view stream);

}  // namespace varve
