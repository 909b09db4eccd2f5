#pragma once

#include <varve/aggregates/repository.h>
#include <varve/commands/outcome.h>
#include <varve/commands/row_tables.h>
#include <varve/locks/lock.h>
#include <varve/transactions/reservation.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

class Transaction;

namespace detail {
class CommandRunner;
}

/// An event that has just been decided, as an inline projection sees it.
struct DecidedEvent {
    std::string_view aggregate_id;
    Version version;  ///< of the slot it will be in
    Time time;
    const void* event;  ///< the aggregate's Event variant
};

namespace detail {
/// By aggregate type's name: what runs for each of its events, inside the transaction that decided it.
using InlineProjections =
    std::multimap<std::string, std::function<void(Transaction&, const DecidedEvent&)>, std::less<>>;

/// Ends a transaction's body. Not a std::exception, so that a body's `catch (const std::exception&)` lets it through.
struct Rejected {
    Rejection rejection;
};
}  // namespace detail

/// One attempt of a command over any number of aggregates and rows: what it reads it sees as of one moment, what it
/// decides is written all or nothing. Handed to the body of Application::transact, which may run several times: it must
/// do nothing that cannot be repeated.
///
///     bank.transact([](Transaction& tx) {
///         tx.execute<Account>("alice", Withdraw{20'00});
///         tx.execute<Account>("bob", Deposit{20'00});
///     });
///
/// Aggregates are seen as this process knows them, which may be out of date; then the commit is refused and the body
/// runs again. So it may see what never was at one moment, but nothing that it then does or says comes of it.
///
/// Threads: belongs to the body's thread. A reference to a state lives as long as the body runs.
///
/// Errors of all methods that read: BlockedError, a ConflictError, if another transaction holds the item for longer than
/// a lease; those of the store; CorruptionError for what cannot be read. Let them pass: Application::transact runs the
/// body again where that helps. InvalidError for an id or a row's key that cannot be one.
class Transaction {
  public:
    /// Decides `command` on the aggregate as this transaction sees it, its own events so far included. A rejection ends
    /// the whole transaction.
    template <Aggregate A, class Command>
    requires(detail::aggregate_has_decide_for<A, Command>::value) void execute(std::string_view id,
                                                                               const Command& command) {
        Touched& touched = touch(aggregate_type<A>(), id);
        const Decision<typename A::Event> decision = static_cast<const A*>(touched.state())->decide(command);
        if (decision.rejection() != nullptr) reject(*decision.rejection());
        for (const typename A::Event& event : decision.events()) {
            A& own = *static_cast<A*>(touched.own_state());
            std::visit([&](const auto& one) { own.apply(one); }, event);
            record(touched, EventVariant<typename A::Event>::encode(event), &event);
        }
    }

    /// The aggregate as this transaction sees it; validated when it commits, like everything that is read here. To see
    /// what an execute has changed, load again.
    template <Aggregate A>
    const A& load(std::string_view id) {
        return *static_cast<const A*>(touch(aggregate_type<A>(), id).state());
    }

    /// Its version as read: 0 if it has no events yet.
    template <Aggregate A>
    Version version(std::string_view id) {
        return touch(aggregate_type<A>(), id).seen.head;
    }

    /// Ends the transaction: nothing is written, the caller gets the rejection.
    [[noreturn]] void reject(Rejection rejection) {
        rejection_ = rejection;
        throw detail::Rejected{std::move(rejection)};
    }

    /// Something that shall be done outside the store once this transaction has committed: a message to send, a call to
    /// make. It is stored with the commit, all or nothing; EventStore::effects reads it back. `effect` is a plain
    /// struct, named like an event.
    template <class Effect>
    void effect(const Effect& effect) {
        effects_.push_back(encode_event(effect));
    }

    /// From here on this transaction can only commit while `lock` is in the same hands: a holder that slept past its
    /// time is refused by the store. LeaseLostError, from here or from the commit, if it has been lost or released;
    /// nothing is written then. InvalidError for a lock of another store.
    void fenced_by(const Lock& lock);

    /// The time that this attempt's events bear.
    Time now() const { return now_; }

    /// Rows of read models, read and written with the events (projections/rows.h).
    template <class T>
    auto rows();

    // Rows with their type erased. Data are JSON text; nullopt: there is no such row.
    std::optional<std::string> read_row(const store::Key& key);
    void write_row(const store::Key& key, std::optional<std::string> data);
    struct RowFound {
        store::Key key;
        std::string data;
    };
    /// The rows of a range in its order, with what this transaction has written so far.
    std::vector<RowFound> read_range(const store::Query& query);
    RowTables& row_tables() { return world_.row_tables; }

  private:
    friend class detail::CommandRunner;
    using Reservation = transactions::Reservation;

    /// One event that has been decided, and by which of the commands.
    struct Decided {
        std::size_t command;
        EventData event;
    };
    struct Touched {
        const AggregateType* type;
        std::string id;
        aggregates::Folded seen;
        std::shared_ptr<void> own;  ///< as seen, and this transaction's events so far; null as long as there are none
        std::vector<Decided> events;

        const void* state() const { return own ? own.get() : seen.state.get(); }
        void* own_state() {
            if (!own) own = type->copy(seen.state.get());
            return own.get();
        }
        aggregates::Repository::Written written(bool settled) const;
    };
    struct TouchedRow {
        transactions::Image seen;
        bool written = false;
        std::optional<std::string> data;
    };
    struct World {
        aggregates::Repository& repository;
        transactions::Coordinator& coordinator;
        RowTables& row_tables;
        const detail::InlineProjections& projections;
    };

    /// `reservation` nullptr: decide first, then prepare. `ask`: whether aggregates may be as last known.
    Transaction(const World& world, std::string tx, Time since, Reservation* reservation,
                aggregates::Repository::Ask ask);

    /// What is recorded from now on belongs to another command.
    void begin_command(Metadata metadata) { commands_.push_back(std::move(metadata)); }

    /// LeaseLostError if one of the locks is in other hands. Costs a read.
    void check_fences() const;
    Touched& touch(const AggregateType& type, std::string_view id);
    TouchedRow& touch(const store::Key& key);
    void record(Touched& touched, EventData data, const void* event);
    /// What the body has decided.
    transactions::Plan plan() const;
    /// What it has read, as if it had decided nothing.
    transactions::Plan reads() const;
    /// The slots that the events of one command will be in, by stream.
    std::vector<Receipt::Written> written_by(std::size_t command) const;
    /// Whether the store was asked for everything that was read.
    bool asked_for_all() const;
    /// What has become of the aggregates by the commit of plan().
    void remember(const transactions::Commit& commit) const;
    /// Remembers what becomes of the slots that are pending at the commit (state_cache.h).
    std::function<void(const store::Key& slot)> settling() const;

    const World world_;
    Reservation* const reservation_;
    transactions::SettledReader reader_;
    const aggregates::Repository::Ask ask_;
    const std::string tx_;
    const Time now_;
    std::vector<Metadata> commands_;
    std::map<std::string, Touched> aggregates_;  // by stream
    std::map<store::Key, TouchedRow> rows_;
    std::vector<transactions::RangeRead> ranges_;
    std::map<store::Key, transactions::RowRead> fences_;  // locks' holders, not read but known from entering
    std::vector<EventData> effects_;
    std::size_t changes_ = 0;      // events and rows so far
    std::size_t event_bytes_ = 0;  // that these events take in slots, at most
    std::optional<Rejection> rejection_;
};

}  // namespace varve
