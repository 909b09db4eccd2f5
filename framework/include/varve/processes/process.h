#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/commands/application.h>
#include <varve/commands/options.h>
#include <varve/processes/reaction.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <variant>
#include <vector>

namespace varve {

// A process manager is an aggregate that listens: it has a name, events and state as any other, and reacts to events.
//
//     struct Checkout {
//         static constexpr std::string_view name = "checkout";
//         using Event = std::variant<Started, Done, GivenUp>;
//         using ListensTo = varve::EventsOf<Order, Payment>;   // aggregates whose events it is asked about
//         …                                                    // fields, and an apply for each of its own events
//
//         // Which instance an event belongs to; none: it is not for this process. One for each event it cares about.
//         static std::optional<std::string> on(const OrderPlaced&, const varve::EventContext& c) {
//             return std::string{c.aggregate_id()};
//         }
//         // What that does about it. One for each `on`.
//         void react(const OrderPlaced& e, varve::Reaction& r) const {
//             r.execute<Stock>(e.product, Reserve{e.quantity});  // in the same transaction
//             r.effect(AskPayment{e.order, e.cents});            // delivered after the commit
//             r.record(Started{});
//         }
//     };
//
//     varve::run<Checkout>(shop);
//
// A process that sets timers says which, and reacts to them as to events:
//
//         using Timers = std::variant<PaymentOverdue>;
//         void react(const PaymentOverdue&, varve::Reaction& r) const { … }

/// The aggregates whose events a process listens to.
template <class... As>
struct EventsOf {};

/// How a process runs.
///
/// Errors: run refuses what cannot work, with a ConfigError that names the option.
struct ProcessOptions {
    /// Which events come first, where nobody has run this process before: those since the store's first commit, or only
    /// what is committed from now on.
    StartAt start_at = StartAt::beginning;
    /// Into how many parts the streams that it listens to are split, so that as many threads, and processes, react at
    /// the same time, to the events of each stream in their order; 1 to 64. Kept with the first start, as
    /// FollowOptions::partitions of a subscription.
    std::size_t partitions = 1;
    /// What happens at an event to which the process cannot react: the event's stream is set aside until somebody takes
    /// it up (Application::retry_parked), or the process stops there.
    FollowOptions::OnPoison on_poison = FollowOptions::OnPoison::park;
    /// Streams that are set aside, at most, in each part; at least 1. With one more it stops.
    std::size_t parked_max = 1000;
    /// How often it asks the store for what others have written; more than 0.
    Duration poll_interval = std::chrono::milliseconds{50};
};

namespace detail {

template <class P, class Event>
concept HasOn = requires(const Event& event, const EventContext& context) {
    P::on(event, context);
};
template <class P, class Event>
concept HasReact = requires(const P& process, const Event& event, Reaction& reaction) {
    process.react(event, reaction);
};

template <class P, class Event>
consteval auto refuse_input() {
    if constexpr (!HasOn<P, Event>) {
        if constexpr (HasReact<P, Event>) {
            return Refused<Rule::has_no_on, Type<Event>, Type<P>>{};
        } else {
            return Fine{};  // it does not care about this one
        }
    } else if constexpr (!requires(const Event& event, const EventContext& context) {
                             { P::on(event, context) } -> std::convertible_to<std::optional<std::string>>;
                         }) {
        return Refused<Rule::has_bad_on, Type<Event>, Type<P>>{};
    } else if constexpr (!HasReact<P, Event>) {
        return Refused<Rule::has_no_react, Type<Event>, Type<P>>{};
    } else {
        return Fine{};
    }
}

template <class P, class Variant>
struct Inputs;
template <class P, class... Events>
struct Inputs<P, std::variant<Events...>> {
    static constexpr bool any = (HasOn<P, Events> || ...);
    using Refused = FirstRefused<decltype(refuse_input<P, Events>())...>;
};

template <class P, class... As>
consteval auto refuse_listening(EventsOf<As...>) {
    using Aggregates = FirstRefused<RefusedAggregate<As>...>;
    if constexpr (Aggregates::refused) {
        return Aggregates{};
    } else {
        using Events = FirstRefused<typename Inputs<P, typename As::Event>::Refused...>;
        if constexpr (Events::refused) {
            return Events{};
        } else if constexpr (!(Inputs<P, typename As::Event>::any || ...)) {
            return Refused<Rule::listens_to_nothing, Type<P>>{};
        } else {
            return Fine{};
        }
    }
}

template <class P, class Variant>
struct RefusedTimersOf;
template <class P, class... Ts>
struct RefusedTimersOf<P, std::variant<Ts...>> {
    template <class Timer>
    using One = std::conditional_t<HasReact<P, Timer>, Fine, Refused<Rule::has_no_react, Type<Timer>, Type<P>>>;
    using First = FirstRefused<One<Ts>...>;
};
template <class P>
consteval auto refuse_timers() {
    if constexpr (!requires { typename P::Timers; }) {
        return Fine{};
    } else if constexpr (!is_a<std::variant, typename P::Timers>) {
        return Refused<Rule::has_bad_timers, Type<P>>{};
    } else if constexpr (RefusedEvents<typename P::Timers>::refused) {
        return RefusedEvents<typename P::Timers>::refuse();
    } else {
        return typename RefusedTimersOf<P, typename P::Timers>::First{};
    }
}

template <class P>
consteval auto refuse_process() {
    if constexpr (RefusedAggregate<P>::refused) {
        return RefusedAggregate<P>{};
    } else if constexpr (!requires { typename P::ListensTo; }) {
        return Refused<Rule::has_no_listens_to, Type<P>>{};
    } else if constexpr (!is_a<EventsOf, typename P::ListensTo>) {
        return Refused<Rule::has_bad_listens_to, Type<P>>{};
    } else {
        return FirstRefused<decltype(refuse_timers<P>()), decltype(refuse_listening<P>(typename P::ListensTo{}))>{};
    }
}
template <class P>
using RefusedProcess = decltype(refuse_process<P>());

template <class T, class Variant>
inline constexpr bool is_among = false;
template <class T, class... Ts>
inline constexpr bool is_among<T, std::variant<Ts...>> = (std::same_as<T, Ts> || ...);

/// The timers of a process that has said none.
struct NoTimer {};
template <class P>
struct TimersOf {
    using type = std::variant<NoTimer>;
};
template <class P>
requires requires {
    typename P::Timers;
}
struct TimersOf<P> {
    using type = typename P::Timers;
};

/// The process P reacts to this event, or timer.
template <class P, class Event>
concept Reacts = !RefusedProcess<P>::refused && HasReact<P, Event> &&
                 (HasOn<P, Event> || is_among<Event, typename TimersOf<P>::type>);

/// What an event is to a process, types erased: which instance it is for, and how that reacts.
struct Input {
    std::string instance;
    std::function<void(const void* process, Reaction& reaction)> react;
};
using TakeInput = std::function<void(const Input&)>;
/// Appends an event to the process of this id.
using Append = std::function<void(Transaction& tx, std::string_view id)>;

/// What the framework's compiled code needs to know of a process.
struct ProcessType {
    struct Heard {
        const AggregateType& aggregate;
        /// Calls `take` for each event that the stored one is read as, if it is for an instance.
        void (*each_input)(const RecordedEvent& recorded, const TakeInput& take);
    };
    const AggregateType& own;
    std::vector<Heard> heard;
    /// Calls `take` for each timer that the stored one is read as. Null: it has none.
    void (*each_timer)(const RecordedEvent& recorded, const TakeInput& take);
    /// In its stored form; nullopt if that is no timer of the process.
    std::optional<EventData> (*encode_timer)(const std::type_info& type, const void* timer);
    /// Null if that is no event of the process.
    Append (*append)(const std::type_info& type, const void* event);
};

/// The event as one of the variant, if it is.
template <class... Events>
void take_event(const std::type_info& type, const void* event, std::optional<std::variant<Events...>>& to) {
    const auto take = [&]<class Event>(std::type_identity<Event>) {
        if (typeid(Event) == type) to.emplace(*static_cast<const Event*>(event));
    };
    (take(std::type_identity<Events>{}), ...);
}

template <class P, class A>
void each_input(const RecordedEvent& recorded, const TakeInput& take) {
    const EventContext context{recorded};
    EventVariant<typename A::Event>::decode(recorded, [&]<class Event>(const Event& event) {
        if constexpr (HasOn<P, Event>) {
            const std::optional<std::string> instance = P::on(event, context);
            if (!instance) return;
            take({*instance, [&event](const void* process, Reaction& reaction) {
                      static_cast<const P*>(process)->react(event, reaction);
                  }});
        }
    });
}

template <class P>
void each_timer(const RecordedEvent& recorded, const TakeInput& take) {
    EventVariant<typename TimersOf<P>::type>::decode(recorded, [&]<class Timer>(const Timer& timer) {
        if constexpr (HasReact<P, Timer>) {
            take({std::string{id_of(recorded.stream)}, [&timer](const void* process, Reaction& reaction) {
                      static_cast<const P*>(process)->react(timer, reaction);
                  }});
        }
    });
}

template <class Variant>
std::optional<EventData> encode_one_of(const std::type_info& type, const void* event) {
    std::optional<Variant> one;
    take_event(type, event, one);
    if (!one) return std::nullopt;
    return EventVariant<Variant>::encode(*one);
}

template <class P>
Append append_of(const std::type_info& type, const void* event) {
    std::optional<typename P::Event> one;
    take_event(type, event, one);
    if (!one) return nullptr;
    return [one = *std::move(one)](Transaction& tx, std::string_view id) { tx.append<P>(id, {one}); };
}

template <class P>
constexpr auto each_timer_of() {
    if constexpr (requires { typename P::Timers; }) {
        return &each_timer<P>;
    } else {
        return nullptr;
    }
}

template <class P, class... As>
ProcessType process_type(EventsOf<As...>) {
    return {.own = aggregate_type<P>(),
            .heard = {{.aggregate = aggregate_type<As>(), .each_input = &each_input<P, As>}...},
            .each_timer = each_timer_of<P>(),
            .encode_timer = &encode_one_of<typename TimersOf<P>::type>,
            .append = &append_of<P>};
}

std::string process_name(const AggregateType& process);
/// The command id under which the process reacts to the event.
std::string reaction_id(const AggregateType& process, const RecordedEvent& event);
void run(Application& application, ProcessType process, const ProcessOptions& options);

}  // namespace detail

/// T has all that a process needs. Where a type lacks something, the compiler says what.
template <class T>
concept ProcessManager = !detail::RefusedProcess<T>::refused;

/// The name under which a process runs: that of a follower (Application::followers, wait_for, parked, retry_parked,
/// unfollow): "$process-checkout".
template <ProcessManager P>
std::string process_name() {
    return detail::process_name(aggregate_type<P>());
}

/// From now on the process reacts in the background to the events of the aggregates that it listens to: first to all
/// that there are, then to each one soon after its commit. Of all programs that call this, one does the work, or one
/// for each of several partitions; if it dies, another goes on where it was. Each event is reacted to once, for ever:
/// its reaction is one transaction, under a command id made of the event's id. The events of one stream are reacted to
/// in their order; those of several streams in any order.
///
/// A reaction that throws, or whose command is rejected without being looked at, fails for good (ProcessOptions::
/// on_poison). What may pass, as a store that does not answer, is tried again. The events, commands and effects of a
/// reaction carry the correlation id of the event and its headers `traceparent` and `tracestate`; its id is their
/// causation id. Until the application ends, or unfollow(process_name<P>()).
///
/// Errors: ConfigError for a store without a feed (docs/feed.md), for a process that runs already, and for options that
/// cannot work. What goes wrong later is in followers() and the log.
template <class P>
requires(ProcessManager<P>) void run(Application& application, const ProcessOptions& options = {}) {
    detail::run(application, detail::process_type<P>(typename P::ListensTo{}), options);
}
template <class P, VARVE_WHY(detail::RefusedProcess<P>)>
requires(!ProcessManager<P>) void run(Application& application, const ProcessOptions& options = {}) VARVE_REFUSED;

}  // namespace varve
