#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/core/json.h>
#include <varve/events/event_store.h>
#include <varve/testing/decided.h>
#include <varve/testing/reacted.h>

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace varve::testing {

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

    /// What a process meets when it reacts: commands on this aggregate are rejected so; the time is this one, else the
    /// epoch's. Without a word, commands are accepted.
    template <Aggregate Other>
    Given& rejecting(std::string_view id, Rejection rejection) {
        world_.rejecting.push_back({stream_name(aggregate_type<Other>(), id), std::move(rejection)});
        return *this;
    }
    Given& at(Time now) {
        world_.now = now;
        return *this;
    }
    /// Timers that it cancels have fired before.
    Given& timers_gone() {
        world_.timers_are_gone = true;
        return *this;
    }

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
    /// Of a process: an event that it listens to, of the aggregate of this id, or one of its timers.
    template <class Event>
    requires(!Decides<A, Event> && varve::detail::Reacts<A, Event>)
        [[nodiscard]] Reacted<A> when(const Event& event, std::string_view aggregate_id = "given",
                                      const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
        RecordedEvent input;
        input.stream = std::string{A::name} + "-" + std::string{aggregate_id};
        input.version = 1;
        input.id = "given";
        input.time = world_.now;
        input.event = encode_event(event);
        input.metadata = std::make_shared<const Metadata>();
        detail::ReactedTo reacted =
            detail::react({file, line}, input, world_, detail::encoding_of<A>(),
                          [&](Reaction& reaction) { std::as_const(state_).react(event, reaction); });
        A after = state_;
        for (EventData& own : reacted.events) own = detail::apply<A>(after, std::move(own));
        return {std::move(after), std::move(reacted)};
    }
    template <class Command, VARVE_WHY(varve::detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command> && !varve::detail::Reacts<A, Command>) Then<A> when(const Command& command)
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
    detail::World world_;
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
/// A process manager is tested by the events that it reacts to (processes/process.h):
///
///     given<Checkout>().when(OrderPlaced{"p-1", 3}, "o-17")
///         .then_commands(command<Stock>("p-1", Reserve{3}))
///         .then_effects(AskPayment{"o-17"})
///         .then(Started{});
///     given<Checkout>().rejecting<Stock>("p-1", reject("out_of_stock")).when(OrderPlaced{"p-1", 3}).then(GivenUp{});
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
