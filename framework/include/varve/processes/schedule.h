#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/commands/application.h>
#include <varve/commands/options.h>
#include <varve/events/event_type.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace varve {

// Commands at a time.
//
//     varve::run_scheduled<Order, Remind>(shop);                          // in the programs that are to execute them
//
//     const std::string id = varve::schedule<Order>(shop, "o-17", Remind{}, shop.runtime().clock.get().now() + 24h);
//     varve::cancel_scheduled<Order>(shop, id);

/// How scheduled commands are executed.
///
/// Errors: run_scheduled refuses what cannot work, with a ConfigError that names the option.
struct ScheduleOptions {
    /// What becomes of a command that is rejected when it is due: it is set aside (processes/parked_timer.h), or
    /// forgotten, with a line in the log.
    enum class OnRejection : std::uint8_t { park, forget };
    OnRejection on_rejection = OnRejection::park;
    /// How often it asks the store for what was scheduled meanwhile; more than 0. One that is due at once may be so
    /// late.
    Duration poll_interval = std::chrono::seconds{1};
};

namespace detail {
/// A stored command, read as one of those that a program knows, on its aggregate. A rejection is a value.
using ExecuteStored = std::function<std::optional<Rejection>(Transaction& tx, const RecordedEvent& command)>;

std::string schedule_name(const AggregateType& aggregate);
std::string schedule(Transaction& tx, const AggregateType& aggregate, std::string_view id, EventData command, Time due);
bool cancel_scheduled(Transaction& tx, const AggregateType& aggregate, std::string_view timer);
void run_scheduled(Application& application, const AggregateType& aggregate, ExecuteStored execute,
                   const ScheduleOptions& options);

template <class A, class... Commands>
using RefusedScheduled = FirstRefused<RefusedCommand<A, Commands>..., RefusedEvent<Commands>...>;

template <class A, class... Commands>
ExecuteStored execute_stored() {
    return [](Transaction& tx, const RecordedEvent& stored) {
        std::optional<Rejection> rejection;
        EventVariant<std::variant<Commands...>>::decode(stored, [&](const auto& command) {
            if (!rejection) rejection = tx.try_execute<A>(id_of(stored.stream), command);
        });
        return rejection;
    };
}
}  // namespace detail

/// The name under which commands on an A are executed when they are due: that of a follower
/// (Application::followers, unfollow, parked_timers): "$schedule-order".
template <Aggregate A>
std::string schedule_name() {
    return detail::schedule_name(aggregate_type<A>());
}

/// Has the command executed at that time, or as soon after it as somebody runs run_scheduled: once, for ever. Set in
/// the transaction: if that does not commit, nothing is scheduled. Returns an id, by which it can be cancelled.
/// `command` is stored as an event is: its fields have a JSON form, and a later program reads its old forms by
/// `Previous`. InvalidError for a time that is none, and an id that cannot be one.
template <class A, class Command>
requires(!detail::RefusedScheduled<A, Command>::refused) std::string
    schedule(Transaction& tx, std::string_view id, const Command& command, Time due) {
    return detail::schedule(tx, aggregate_type<A>(), id, encode_event(command), due);
}
template <class A, class Command, VARVE_WHY(detail::RefusedScheduled<A, Command>)>
requires(detail::RefusedScheduled<A, Command>::refused) std::string
    schedule(Transaction& tx, std::string_view id, const Command& command, Time due)
VARVE_REFUSED;

/// The same, in a transaction of its own. Errors: as Application::transact.
template <class A, class Command>
requires(!detail::RefusedScheduled<A, Command>::refused) std::string
    schedule(Application& application, std::string_view id, const Command& command, Time due,
             const CommandOptions& options = {}) {
    std::string timer;
    application.transact([&](Transaction& tx) { timer = schedule<A>(tx, id, command, due); }, options).value();
    return timer;
}
template <class A, class Command, VARVE_WHY(detail::RefusedScheduled<A, Command>)>
requires(detail::RefusedScheduled<A, Command>::refused) std::string
    schedule(Application& application, std::string_view id, const Command& command, Time due,
             const CommandOptions& options = {})
VARVE_REFUSED;

/// Cancels a scheduled command in the transaction that makes it pointless. False: it was executed, or cancelled before.
/// InvalidError for an id that scheduling a command on an A has not returned.
template <Aggregate A>
bool cancel_scheduled(Transaction& tx, std::string_view timer) {
    return detail::cancel_scheduled(tx, aggregate_type<A>(), timer);
}
template <Aggregate A>
bool cancel_scheduled(Application& application, std::string_view timer) {
    bool is_cancelled = false;
    application.transact([&](Transaction& tx) { is_cancelled = cancel_scheduled<A>(tx, timer); }).value();
    return is_cancelled;
}

/// From now on scheduled commands on an A are executed in the background when they are due, those of earlier first. Of
/// all programs that call this, one does the work; if it dies, another goes on. `Commands` are all those that may have
/// been scheduled: one of another type is set aside, as one that throws. The events of a command carry its timer's id
/// as their command id, and the correlation id and trace of the command that has scheduled it.
///
/// Errors: ConfigError for a store without a feed (docs/feed.md), if it runs already, and for options that cannot work.
template <class A, class... Commands>
requires(sizeof...(Commands) > 0 &&
         !detail::RefusedScheduled<A, Commands...>::refused) void run_scheduled(Application& application,
                                                                                const ScheduleOptions& options = {}) {
    detail::run_scheduled(application, aggregate_type<A>(), detail::execute_stored<A, Commands...>(), options);
}
template <class A, class... Commands, VARVE_WHY(detail::RefusedScheduled<A, Commands...>)>
requires(sizeof...(Commands) > 0 && detail::RefusedScheduled<A, Commands...>::refused) void run_scheduled(
    Application& application, const ScheduleOptions& options = {}) VARVE_REFUSED;

}  // namespace varve
