#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/core/json.h>
#include <varve/testing/assertion_failed.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// What given() and what follows from it share.

namespace varve::testing::detail {

/// Where a test asks, for the message: "account_test.cpp:12".
struct Place {
    const char* file;
    int line;
};

/// What a command has led to, types erased.
struct Decided {
    Place place;
    std::string command;                 ///< "Withdraw"
    std::optional<Rejection> rejection;  ///< empty: it was accepted
    std::vector<EventData> events;
    std::vector<EventData> effects;
};

// Each throws AssertionFailed unless it holds.
void expect_events(const Decided& decided, const std::vector<EventData>& expected);
void expect_effects(const Decided& decided, const std::vector<EventData>& expected);
void expect_rejection(const Decided& decided, std::string_view code);
void expect_message(const Decided& decided, std::string_view message);
void expect_state(const Place& place, std::string_view aggregate, const std::string& expected,
                  const std::string& actual);
[[noreturn]] void fail_state(const Place& place, std::string_view aggregate);

template <class Variant, class Event>
inline constexpr bool is_one_of = false;
template <class... Events, class Event>
inline constexpr bool is_one_of<std::variant<Events...>, Event> = (std::same_as<Event, Events> || ...);

template <class A, class... Given>
consteval auto refuse_given() {
    if constexpr (varve::detail::RefusedAggregate<A>::refused) {
        return varve::detail::RefusedAggregate<A>{};
    } else {
        return varve::detail::FirstRefused<std::conditional_t<
            std::same_as<Given, EventData> || is_one_of<typename A::Event, Given>, varve::detail::Fine,
            varve::detail::Refused<varve::detail::Rule::is_no_event, varve::detail::Type<Given>,
                                   varve::detail::Type<A>>>...>{};
    }
}
template <class A, class... Events>
using RefusedGiven = decltype(refuse_given<A, Events...>());

/// Applies an event by way of its stored form, so that what does not survive being stored is found here.
template <Aggregate A>
EventData apply(A& state, EventData event) {
    RecordedEvent recorded;
    recorded.stream = std::string{A::name} + "-given";
    recorded.version = 1;
    recorded.event = std::move(event);
    aggregate_type<A>().apply(&state, recorded);
    return recorded.event;
}
inline EventData stored(const EventData& event) {
    return event;
}
template <class Event>
EventData stored(const Event& event) {
    return encode_event(event);
}

/// A check is a function of the state that returns false, or throws, if it does not hold.
template <class A, class Check>
void check_state(const Place& place, const A& state, Check&& check) {
    if constexpr (std::convertible_to<std::invoke_result_t<Check, const A&>, bool>) {
        if (!check(state)) fail_state(place, A::name);
    } else {
        check(state);
    }
}

}  // namespace varve::testing::detail
