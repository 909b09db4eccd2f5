#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/commands/outcome.h>
#include <varve/rows/rows.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace varve {

namespace detail {
class Workspace;
struct Touched;
}  // namespace detail

/// One attempt of a command over any number of aggregates and rows. What it reads is validated as of one moment, and
/// what it decides is written all or nothing. The body of Application::transact gets one. The body may run several
/// times, so it must do nothing that cannot be repeated.
///
///     bank.transact([](Transaction& tx) {
///         tx.execute<Account>("alice", Withdraw{20'00});
///         tx.execute<Account>("bob", Deposit{20'00});
///     });
///
/// The body sees aggregates as this process last knew them. If that is out of date, the commit is refused and the body
/// runs again. So a body may see a combination that never existed at one moment, but nothing comes of such a run.
///
/// Threads: belongs to the body's thread. A reference to a state lives as long as the body runs.
///
/// Errors of all methods that read: BlockedError, a ConflictError, if another transaction holds the item for longer
/// than a lease; those of the store; CorruptionError for what cannot be read. Let them pass: Application::transact runs
/// the body again where that helps. InvalidError for an id or a row's key that cannot be one.
class Transaction {
  public:
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// Decides `command` on the aggregate as this transaction sees it, including its own events so far. A rejection
    /// ends the whole transaction.
    template <class A, class Command>
    requires(Decides<A, Command>) void execute(std::string_view id, const Command& command) {
        if (std::optional<Rejection> rejection = try_execute<A>(id, command)) reject(*std::move(rejection));
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) void execute(std::string_view id, const Command& command) VARVE_REFUSED;

    /// As execute, but a rejection by the aggregate is a value: nothing comes of this command, and the transaction goes
    /// on. A rejection by an inline projection still ends it.
    template <class A, class Command>
    requires(Decides<A, Command>)
        [[nodiscard]] std::optional<Rejection> try_execute(std::string_view id, const Command& command) {
        detail::Touched& touched = touch(aggregate_type<A>(), id);
        const Decision<typename A::Event> decision = static_cast<const A*>(state(touched))->decide(command);
        if (decision.rejection() != nullptr) return *decision.rejection();
        record<A>(touched, decision.events());
        for (const EventData& effect : decision.effects()) add_effect(effect);
        return std::nullopt;
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) std::optional<Rejection> try_execute(std::string_view id, const Command& command)
    VARVE_REFUSED;

    /// Appends events that were decided elsewhere, as they are: for imports (Application::append).
    template <Aggregate A>
    void append(std::string_view id, const std::vector<typename A::Event>& events) {
        record<A>(touch(aggregate_type<A>(), id), events);
    }
    /// The aggregate as this transaction sees it; validated when it commits, like everything that is read here. To see
    /// what an execute has changed, load again.
    template <Aggregate A>
    const A& load(std::string_view id) {
        return *static_cast<const A*>(look(aggregate_type<A>(), id));
    }
    template <class A, VARVE_WHY(detail::RefusedAggregate<A>)>
    requires(!Aggregate<A>) const A& load(std::string_view id) VARVE_REFUSED;

    /// Loads several aggregates together, and with them the rows that projections keep for each of them alone (OwnRows
    /// in commands/projection.h). All that is not known yet costs one round trip. The calls after it find it
    /// here:
    ///
    ///     tx.load_all<Account>({"alice", "bob"});
    ///     tx.execute<Account>("alice", Withdraw{20'00});
    ///     tx.execute<Account>("bob", Deposit{20'00});
    template <Aggregate A>
    void load_all(const std::vector<std::string>& ids) {
        touch_all(aggregate_type<A>(), ids);
    }
    template <class A, VARVE_WHY(detail::RefusedAggregate<A>)>
    requires(!Aggregate<A>) void load_all(const std::vector<std::string>& ids) VARVE_REFUSED;

    /// Its version as read: 0 if it has no events yet.
    template <Aggregate A>
    Version version(std::string_view id) {
        return version(aggregate_type<A>(), id);
    }

    /// Ends the transaction: nothing is written, the caller gets the rejection.
    [[noreturn]] void reject(Rejection rejection);

    /// Adds something to be done outside the store once this transaction has committed: a message to send, a call to
    /// make. It is stored with the commit, all or nothing; EventStore::effects reads it back. `effect` is a plain
    /// struct, named like an event.
    template <EventType Effect>
    void effect(const Effect& effect) {
        add_effect(encode_event(effect));
    }
    template <class Effect, VARVE_WHY(detail::RefusedEvent<Effect>)>
    requires(!EventType<Effect>) void effect(const Effect& effect) VARVE_REFUSED;

    /// From here on this transaction can commit only while `lock` is in the same hands: the store refuses a holder that
    /// slept past its time. LeaseLostError, from here or from the commit, if the lock has been lost or released;
    /// nothing is written then. InvalidError for a lock of another store.
    void fenced_by(const Lock& lock);

    /// The time that this attempt's events will carry.
    Time now() const;

    /// Rows of read models, read and written with the events (rows/rows.h).
    template <ReadModel T>
    RowsInTransaction<T> rows() {
        return RowsInTransaction<T>{stored_rows()};
    }
    template <class T, VARVE_WHY(detail::RefusedReadModel<T>)>
    requires(!ReadModel<T>) detail::RefusedRows<T> rows()
    VARVE_REFUSED;

  private:
    friend class Application;
    friend class detail::Workspace;
    explicit Transaction(detail::Workspace& workspace) : workspace_(workspace) {}

    // What this attempt has read and decided is in its workspace.
    detail::Touched& touch(const AggregateType& type, std::string_view id);
    void touch_all(const AggregateType& type, const std::vector<std::string>& ids);
    /// Only to be read: what projections keep for it is not asked for.
    const void* look(const AggregateType& type, std::string_view id);
    static const void* state(const detail::Touched& touched);
    static void* own_state(detail::Touched& touched);
    Version version(const AggregateType& type, std::string_view id);
    /// Rejects unless the aggregate is at this version.
    void expect(const AggregateType& type, std::string_view id, Version version);
    template <Aggregate A>
    void record(detail::Touched& touched, const std::vector<typename A::Event>& events) {
        for (const typename A::Event& event : events) {
            A& own = *static_cast<A*>(own_state(touched));
            std::visit([&](const auto& one) { own.apply(one); }, event);
            record(touched, EventVariant<typename A::Event>::encode(event), &event);
        }
    }
    void record(detail::Touched& touched, EventData data, const void* event);
    void add_effect(EventData effect);
    detail::RowsOfTransaction& stored_rows();

    detail::Workspace& workspace_;
};

}  // namespace varve
