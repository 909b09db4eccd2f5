#pragma once

#include <varve/core/json.h>
#include <varve/processes/process.h>
#include <varve/testing/decided.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace varve::testing {

namespace detail {

/// What an event has led to, types erased.
struct ReactedTo {
    Place place;
    std::string event;                ///< "Placed"
    std::vector<EventData> commands;  ///< "Reserve on stock-p", and its fields
    std::vector<EventData> events;
    std::vector<EventData> effects;
    std::vector<EventData> timers;  ///< "2026-01-31T12:00:00.000000Z PaymentOverdue", and its fields
    std::vector<std::string> cancelled;
};

/// Commands to this stream are rejected so.
struct Rejecting {
    std::string stream;
    Rejection rejection;
};

/// An event, or a timer, of the process in its stored form; nullopt: it is none.
struct Encoding {
    std::optional<EventData> (*event)(const std::type_info& type, const void* event);
    std::optional<EventData> (*timer)(const std::type_info& type, const void* timer);
};

/// What a reaction meets.
struct World {
    Time now = {};
    std::vector<Rejecting> rejecting = {};
    bool timers_are_gone = false;
};

/// What `react` does there. AssertionFailed if it does what fails a reaction.
ReactedTo react(Place place, const RecordedEvent& input, const World& world, const Encoding& encode,
                const std::function<void(Reaction&)>& react);

// Each throws AssertionFailed unless it holds.
void expect_commands(const ReactedTo& reacted, const std::vector<EventData>& expected);
void expect_events(const ReactedTo& reacted, const std::vector<EventData>& expected);
void expect_effects(const ReactedTo& reacted, const std::vector<EventData>& expected);

void expect_timers(const ReactedTo& reacted, const std::vector<EventData>& expected);
void expect_cancelled(const ReactedTo& reacted, const std::vector<std::string>& expected);

template <class P>
Encoding encoding_of() {
    using varve::detail::encode_one_of;
    return {.event = &encode_one_of<typename P::Event>,
            .timer = &encode_one_of<typename varve::detail::TimersOf<P>::type>};
}

}  // namespace detail

/// A command as Reacted::then_commands expects it.
struct ExpectedCommand {
    EventData data;
};
template <class A, class Command>
requires(Decides<A, Command>) ExpectedCommand command(std::string_view id, const Command& command) {
    static_assert(!varve::detail::RefusedJson<Command>::refused,
                  "commands are compared by their fields, which must have a JSON form (core/json.h)");
    return {{.type = std::string{type_name<Command>()} + " on " + stream_name(aggregate_type<A>(), id),
             .data = json::encode(command)}};
}

/// A timer as Reacted::then_timers expects it.
struct ExpectedTimer {
    EventData data;
};
template <EventType Timer>
ExpectedTimer timer_at(Time due, const Timer& timer) {
    EventData data = encode_event(timer);
    data.type = to_string(due) + " " + data.type;
    return {std::move(data)};
}

/// What follows from an event that a process reacts to; see given().
template <class P>
class Reacted {
  public:
    Reacted(P state, detail::ReactedTo reacted) : state_(std::move(state)), reacted_(std::move(reacted)) {}

    /// Exactly these commands, in this order, field by field, also those that were rejected:
    ///
    ///     ….then_commands(command<Stock>("p-1", Reserve{3}), command<Order>("o-17", Cancel{}))
    template <std::same_as<ExpectedCommand>... Commands>
    const Reacted& then_commands(const Commands&... commands) const {
        detail::expect_commands(reacted_, {commands.data...});
        return *this;
    }
    /// Exactly these effects.
    template <EventType... Effects>
    const Reacted& then_effects(const Effects&... effects) const {
        detail::expect_effects(reacted_, {encode_event(effects)...});
        return *this;
    }
    /// Exactly these events of its own.
    template <class... Events>
    requires(!detail::RefusedGiven<P, Events...>::refused) const Reacted& then(const Events&... events) const {
        detail::expect_events(reacted_, {detail::stored(events)...});
        return *this;
    }
    template <class... Events, VARVE_WHY(detail::RefusedGiven<P, Events...>)>
    requires(detail::RefusedGiven<P, Events...>::refused) const Reacted& then(const Events&... events) const
        VARVE_REFUSED;
    /// Exactly this timer. given(…).at(now) says what time it is.
    template <EventType Timer>
    const Reacted& then_timer_at(Time due, const Timer& timer) const {
        return then_timers(timer_at(due, timer));
    }
    /// Exactly these timers, in the order in which they were set.
    template <std::same_as<ExpectedTimer>... Timers>
    const Reacted& then_timers(const Timers&... timers) const {
        detail::expect_timers(reacted_, {timers.data...});
        return *this;
    }
    const Reacted& then_no_timer() const {
        detail::expect_timers(reacted_, {});
        return *this;
    }
    /// Exactly the timers of these ids. Those that a test sets are called "timer-1", "timer-2", …
    template <std::convertible_to<std::string>... Ids>
    const Reacted& then_cancelled(const Ids&... ids) const {
        detail::expect_cancelled(reacted_, {std::string{ids}...});
        return *this;
    }
    /// Neither commands nor effects, events or timers.
    const Reacted& then_nothing() const {
        detail::expect_timers(reacted_, {});
        detail::expect_cancelled(reacted_, {});
        detail::expect_commands(reacted_, {});
        detail::expect_effects(reacted_, {});
        detail::expect_events(reacted_, {});
        return *this;
    }
    /// The process after its events. `check` takes a const P&; it may return false, or assert by itself.
    template <std::invocable<const P&> Check>
    const Reacted& then_state(Check&& check) const {
        detail::check_state(reacted_.place, state_, check);
        return *this;
    }
    /// Compares the state field by field, for a process whose fields JSON can hold.
    const Reacted& then_state(const P& expected) const {
        detail::expect_state(reacted_.place, P::name, json::encode(expected), json::encode(state_));
        return *this;
    }
    const P& state() const { return state_; }

  private:
    P state_;
    detail::ReactedTo reacted_;
};

}  // namespace varve::testing
