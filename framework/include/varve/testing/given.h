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
#include <vector>

namespace varve::testing {

namespace detail {

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
    using namespace varve::detail;
    if constexpr (RefusedAggregate<A>::refused) {
        return RefusedAggregate<A>{};
    } else {
        return FirstRefused<std::conditional_t<std::same_as<Given, EventData> || is_one_of<typename A::Event, Given>,
                                               Fine, Refused<Rule::is_no_event, Type<Given>, Type<A>>>...>{};
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

}  // namespace detail

/// What follows from a command; see given().
template <class A>
class Then {
  public:
    Then(A state, detail::Decided decided) : state_(std::move(state)), decided_(std::move(decided)) {}

    /// Exactly these events, in this order, field by field.
    template <class... Events>
    requires(!detail::RefusedGiven<A, Events...>::refused) const Then& then(const Events&... events) const {
        detail::expect_events(decided_, {detail::stored(events)...});
        return *this;
    }
    template <class... Events, VARVE_WHY(detail::RefusedGiven<A, Events...>)>
    requires(detail::RefusedGiven<A, Events...>::refused) const Then& then(const Events&... events) const VARVE_REFUSED;
    /// Exactly these effects, in this order, field by field.
    template <EventType... Effects>
    const Then& then_effects(const Effects&... effects) const {
        detail::expect_effects(decided_, {encode_event(effects)...});
        return *this;
    }
    /// Accepted, and no event.
    const Then& then_nothing() const {
        detail::expect_events(decided_, {});
        return *this;
    }
    const Then& then_rejected(std::string_view code) const {
        detail::expect_rejection(decided_, code);
        return *this;
    }
    const Then& then_rejected(std::string_view code, std::string_view message) const {
        detail::expect_rejection(decided_, code);
        detail::expect_message(decided_, message);
        return *this;
    }
    /// The state after the decided events. `check` takes a const A&; it may return false, or assert by itself.
    template <std::invocable<const A&> Check>
    const Then& then_state(Check&& check) const {
        detail::check_state(decided_.place, state_, check);
        return *this;
    }
    /// Compares the state field by field, for an aggregate whose fields JSON can hold.
    const Then& then_state(const A& expected) const {
        detail::expect_state(decided_.place, A::name, json::encode(expected), json::encode(state_));
        return *this;
    }
    const A& state() const { return state_; }

  private:
    A state_;
    detail::Decided decided_;
};

/// An aggregate with a past; see given().
template <class A>
class Given {
  public:
    explicit Given(A state) : state_(std::move(state)) {}

    template <class Command>
    requires(Decides<A, Command>)
        [[nodiscard]] Then<A> when(const Command& command, const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) const {
        const Decision<typename A::Event> decision = std::as_const(state_).decide(command);
        A after = state_;
        detail::Decided decided{.place = {file, line},
                                .command = std::string{type_name<Command>()},
                                .rejection = {},
                                .events = {},
                                .effects = decision.effects()};
        if (decision.rejection() != nullptr) decided.rejection = *decision.rejection();
        for (const typename A::Event& event : decision.events()) {
            decided.events.push_back(detail::apply<A>(after, EventVariant<typename A::Event>::encode(event)));
        }
        return {std::move(after), std::move(decided)};
    }
    template <class Command, VARVE_WHY(varve::detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) Then<A> when(const Command& command)
    const VARVE_REFUSED;

    /// The state that the past alone has led to: for events whose change no command would show.
    template <std::invocable<const A&> Check>
    void then_state(Check&& check, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
        detail::check_state({file, line}, state_, check);
    }
    void then_state(const A& expected, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
        detail::expect_state({file, line}, A::name, json::encode(expected), json::encode(state_));
    }
    const A& state() const { return state_; }

  private:
    A state_;
};

/// Tests an aggregate in its own words, without any store:
///
///     given<Account>(Opened{"Alice"}, Deposited{50}).when(Withdraw{80}).then_rejected("insufficient_funds");
///     given<Account>(Opened{"Alice"}, Deposited{50}).when(Withdraw{20}).then(Withdrawn{20});
///     given<Account>().when(Open{"Alice"}).then(Opened{"Alice"}).then_state([](const Account& a) { return a.open; });
///
/// A `then` that does not hold throws AssertionFailed; its message shows line by line what was expected and what was
/// decided, and names the fields that differ. Works with any test framework. Events go through their stored form. Give
/// one of an old schema as it is stored:
///
///     given<Account>(EventData{.type = "Deposited", .schema = 1, .data = R"({"cents":50})"}).when(…)
///
/// Threads: each call stands for itself.
template <class A, class... Events>
requires(!detail::RefusedGiven<A, Events...>::refused) [[nodiscard]] Given<A> given(const Events&... events) {
    A state{};
    (detail::apply<A>(state, detail::stored(events)), ...);
    return Given<A>{std::move(state)};
}
template <class A, class... Events, VARVE_WHY(detail::RefusedGiven<A, Events...>)>
requires(detail::RefusedGiven<A, Events...>::refused) Given<A> given(const Events&... events)
VARVE_REFUSED;

}  // namespace varve::testing
