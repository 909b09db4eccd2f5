#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/commands/transaction.h>
#include <varve/core/json.h>
#include <varve/events/event.h>

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace varve {

class Transaction;

/// The event that a process is asked about, beside its fields. Lives as long as the call that it is given to.
class EventContext {
  public:
    explicit EventContext(const RecordedEvent& event) : event_(event) {}
    EventContext(const EventContext&) = delete;
    EventContext& operator=(const EventContext&) = delete;

    /// The id of the aggregate that the event belongs to: "o-17".
    std::string_view aggregate_id() const { return id_of(event_.stream); }
    /// Unique (RecordedEvent::id).
    const std::string& id() const { return event_.id; }
    Version version() const { return event_.version; }
    /// When it was decided, by the clock of whoever did.
    Time time() const { return event_.time; }
    /// Of the command that decided the event.
    const Metadata& metadata() const { return *event_.metadata; }
    const RecordedEvent& recorded() const { return event_; }

  private:
    const RecordedEvent& event_;
};

namespace detail {
/// A command that a reaction has given, and that was rejected.
struct Refusal {
    Rejection rejection;
    std::string command;   ///< "Reserve on stock-p-1"
    bool is_seen = false;  ///< by the process
};

/// A command that a reaction gives, types erased.
struct GivenCommand {
    const AggregateType& aggregate;
    std::string_view id;
    std::string_view command;  ///< "Reserve"
    std::function<std::optional<Rejection>(Transaction&)> execute;
    std::function<std::string()> json;  ///< its fields; empty text if they have no JSON form
};
}  // namespace detail

/// What has become of a command inside a reaction. Whoever asks has looked at a rejection; one that nobody has looked
/// at fails the reaction.
class Executed {
  public:
    explicit Executed(detail::Refusal* refusal) : refusal_(refusal) {}
    /// Whether it was accepted.
    explicit operator bool() const { return rejection() == nullptr; }
    /// Null if it was accepted. Lives as long as the reaction.
    const Rejection* rejection() const {
        if (refusal_ == nullptr) return nullptr;
        refusal_->is_seen = true;
        return &refusal_->rejection;
    }

  private:
    detail::Refusal* refusal_;
};

/// What a process does about an event. All of it is one transaction, together with the note that the process has
/// reacted: it is committed once, or nothing of it is.
///
///     void react(const OrderPlaced& e, varve::Reaction& r) const {
///         if (!r.execute<Stock>(e.product, Reserve{e.quantity})) return r.record(GivenUp{});
///         r.effect(AskPayment{e.order, e.cents});
///         r.record(Started{});
///     }
///
/// A reaction may run several times before it is committed, as the body of a transaction does.
///
/// Threads: belongs to the reaction's thread. Errors of all methods: as Transaction's; let them pass.
class Reaction {
  public:
    Reaction(const Reaction&) = delete;
    Reaction& operator=(const Reaction&) = delete;

    /// What it reacts to.
    const EventContext& input() const { return input_; }
    /// The time that the reaction's own events will carry.
    virtual Time now() const = 0;

    /// Decides the command on another aggregate, as Transaction::execute, but a rejection is a value:
    ///
    ///     if (const varve::Executed reserved = r.execute<Stock>(product, Reserve{1}); !reserved) …reserved.rejection()
    ///
    /// A rejection that is not looked at fails the reaction. InvalidError for the process itself, which records.
    template <class A, class Command>
    requires(Decides<A, Command>) Executed execute(std::string_view id, const Command& command) {
        return give({.aggregate = aggregate_type<A>(),
                     .id = id,
                     .command = type_name<Command>(),
                     .execute = [&](Transaction& tx) { return tx.try_execute<A>(id, command); },
                     .json = [&] { return json_of(command); }});
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) Executed execute(std::string_view id, const Command& command)
    VARVE_REFUSED;

    /// Something to be done outside the store once the reaction is committed, as Transaction::effect.
    template <EventType Effect>
    void effect(const Effect& effect) {
        add_effect(encode_event(effect));
    }
    template <class Effect, VARVE_WHY(detail::RefusedEvent<Effect>)>
    requires(!EventType<Effect>) void effect(const Effect& effect) VARVE_REFUSED;

    /// An event of the process itself, one of its Event variant; else an InvalidError. It is applied when the reaction
    /// is over: until then the process is as it was.
    template <EventType Event>
    void record(const Event& event) {
        add_event(typeid(Event), qualified_type_name<Event>(), &event);
    }
    template <class Event, VARVE_WHY(detail::RefusedEvent<Event>)>
    requires(!EventType<Event>) void record(const Event& event) VARVE_REFUSED;

    /// Sets a timer, one of the process's Timers variant; else an InvalidError. At that time, or as soon after it as
    /// somebody runs the process, the same instance reacts to it, once, as to an event. Returns the timer's id, by
    /// which it can be cancelled. It is not early by the clock of whoever fires it, in other words of `now()` there.
    template <EventType Timer>
    std::string at(Time due, const Timer& timer) {
        return set_timer(due, typeid(Timer), qualified_type_name<Timer>(), &timer);
    }
    template <class Timer, VARVE_WHY(detail::RefusedEvent<Timer>)>
    requires(!EventType<Timer>) std::string at(Time due, const Timer& timer)
    VARVE_REFUSED;
    /// Cancels a timer of the process; false: it has fired, or was cancelled before. InvalidError for an id of none.
    virtual bool cancel(std::string_view id) = 0;

  protected:
    explicit Reaction(const EventContext& input) : input_(input) {}
    ~Reaction() = default;
    /// Of commands that were rejected: the first that nobody has looked at.
    const detail::Refusal* unseen() const;

  private:
    template <class T>
    static std::string json_of(const T& value) {
        if constexpr (detail::RefusedJson<T>::refused)
            return {};
        else
            return json::encode(value);
    }
    Executed give(const detail::GivenCommand& command);

    virtual std::optional<Rejection> execute(const detail::GivenCommand& command) = 0;
    virtual void add_effect(EventData effect) = 0;
    virtual void add_event(const std::type_info& type, std::string_view name, const void* event) = 0;
    virtual std::string set_timer(Time due, const std::type_info& type, std::string_view name, const void* timer) = 0;

    const EventContext& input_;
    std::list<detail::Refusal> refusals_;
};

}  // namespace varve
