#pragma once

#include <varve/commands/fingerprint.h>
#include <varve/commands/options.h>
#include <varve/commands/projection.h>
#include <varve/commands/transaction.h>
#include <varve/core/runtime.h>
#include <varve/events/event.h>
#include <varve/transactions/outcome.h>

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>

namespace varve {

class Application;
class EventStore;
class Locks;
struct FollowerStatus;
struct LaneMetrics;
struct ParkedStream;
struct StreamListPage;
struct Verified;

namespace aggregates {
struct CacheMetrics;
}
namespace store {
class ItemStore;
}
namespace telemetry {
struct Metric;
}

namespace detail {
struct ApplicationParts;
ApplicationParts& parts_of(Application& application);

template <class Body>
consteval auto refuse_body() {
    if constexpr (!std::is_invocable_v<Body&, Transaction&>) {
        return Refused<Rule::takes_no_transaction, Type<Body>>{};
    } else if constexpr (!std::is_void_v<std::invoke_result_t<Body&, Transaction&>>) {
        return Refused<Rule::returns_something, Type<Body>>{};
    } else {
        return Fine{};
    }
}
template <class Body>
using RefusedBody = decltype(refuse_body<std::remove_reference_t<Body>>());
}  // namespace detail

/// An aggregate as it was read.
template <class A>
struct Loaded {
    A state;
    Version version = 0;  ///< 0: it has no events yet
};

/// Up to which point in its history an aggregate is loaded.
struct AsOf {
    std::variant<Version, Time> point;
    static AsOf version(Version version) { return {version}; }
    static AsOf time(Time time) { return {time}; }
};

/// Where an application begins: executes commands on aggregates in one store, reads them and their read models.
///
///     varve::Application bank{varve::open("sqlite:bank.db")};
///     bank.execute<Account>("alice", Deposit{100'00});
///
/// Threads: all methods may be called from any thread; project() before the first command. The destructor waits for
/// what was submitted, finishes what runs in the background and joins its threads.
///
/// Errors of execute, submit and transact: ConflictError after the last attempt, InDoubtError when the outcome is
/// unknown (repeat it only under a command id), those of the store. An exception that a handler or body throws passes
/// through, and nothing is written; so does std::bad_alloc. InvalidError where one of them is called from inside a
/// handler, or a body, of the same application: it would wait for itself.
class Application {
  public:
    /// Makes the framework's tables where they are missing. ConfigError naming the option that cannot work, or for a
    /// store that holds another version's data; the store's errors.
    explicit Application(std::shared_ptr<store::ItemStore> store, ApplicationOptions options = {});
    /// Waits for what still runs, and for writes that put finished transactions away: in an outage of the store for up
    /// to Options::answer_time_max.
    ~Application();
    Application(const Application&) = delete;
    Application& operator=(const Application&) = delete;

    /// Decides and appends; tries again on conflict. Commands on one aggregate that run at the same time are decided
    /// one after the other and appended together (LaneOptions). Each keeps its own outcome.
    template <class A, class Command>
    requires(Decides<A, Command>) Outcome
        execute(std::string_view id, const Command& command, const CommandOptions& options = {}) {
        const std::string stream = stream_name(aggregate_type<A>(), id);
        return execute(
            aggregate_type<A>(), stream,
            [&](Transaction& tx) {
                if (options.expected_version) tx.expect(aggregate_type<A>(), id, *options.expected_version);
                tx.execute<A>(id, command);
            },
            options, fingerprint(stream, detail::command_name<Command>(), command, options));
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) Outcome
        execute(std::string_view id, const Command& command, const CommandOptions& options = {})
    VARVE_REFUSED;

    /// As execute, without waiting: many commands of one caller go together. The future throws what execute would
    /// throw; OverloadedError and InvalidError are thrown from here. Futures become ready in the order of the lane.
    template <class A, class Command>
    requires(Decides<A, Command>) std::future<Outcome> submit(std::string_view id, Command command,
                                                              CommandOptions options = {}) {
        const std::optional<Version> expected = options.expected_version;
        const std::string stream = stream_name(aggregate_type<A>(), id);
        std::string print = fingerprint(stream, detail::command_name<Command>(), command, options);
        return submit(
            aggregate_type<A>(), stream,
            [id = std::string{id}, command = std::move(command), expected](Transaction& tx) {
                if (expected) tx.expect(aggregate_type<A>(), id, *expected);
                tx.execute<A>(id, command);
            },
            std::move(options), std::move(print));
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) std::future<Outcome> submit(std::string_view id, Command command,
                                                               CommandOptions options = {})
    VARVE_REFUSED;

    /// Appends events that were decided elsewhere, as ONE slot: an import. Inline projections run for them in the same
    /// transaction; EventStore::append does not run them. As with execute, `expected_version` says at which version the
    /// aggregate must be, and a command id makes a repeat harmless. Transaction::append takes several aggregates
    /// together, which is the way to import many (docs/events.md):
    ///
    ///     bank.append<Account>("alice", {Opened{"Alice"}, Deposited{100'00}}, {.expected_version = 0});
    ///
    /// InvalidError for no events.
    template <Aggregate A>
    Outcome append(std::string_view id, const std::vector<typename A::Event>& events,
                   const CommandOptions& options = {}) {
        const std::string stream = stream_name(aggregate_type<A>(), id);
        if (events.empty()) throw InvalidError("an append to '" + stream + "' has no events");
        return execute(
            aggregate_type<A>(), stream,
            [&](Transaction& tx) {
                if (options.expected_version) tx.expect(aggregate_type<A>(), id, *options.expected_version);
                tx.append<A>(id, events);
            },
            options, fingerprint(stream, "append", events, options));
    }

    /// Runs `body` and commits what it decided, all or nothing. Strictly serializable over aggregates and rows,
    /// including what was only read. Tries again on conflict, so the body may run several times.
    template <class Body>
    requires(!detail::RefusedBody<Body>::refused) Outcome transact(Body&& body, const CommandOptions& options = {}) {
        return run(std::ref(body), options);
    }
    template <class Body, VARVE_WHY(detail::RefusedBody<Body>)>
    requires(detail::RefusedBody<Body>::refused) Outcome transact(Body&& body, const CommandOptions& options = {})
    VARVE_REFUSED;

    /// Read committed: every acknowledged commit, nothing else.
    template <Aggregate A>
    Loaded<A> load(std::string_view id) {
        return loaded<A>(load(aggregate_type<A>(), id));
    }
    template <class A, VARVE_WHY(detail::RefusedAggregate<A>)>
    requires(!Aggregate<A>) Loaded<A> load(std::string_view id)
    VARVE_REFUSED;
    template <Aggregate A>
    Loaded<A> load(std::string_view id, AsOf as_of) {
        return loaded<A>(load(aggregate_type<A>(), id, as_of));
    }

    /// Compares the snapshot of an aggregate, if there is one, with what its events say: reads the whole stream.
    template <Aggregate A>
    SnapshotCheck check_snapshot(std::string_view id) {
        return check_snapshot(aggregate_type<A>(), id);
    }

    /// The events of one aggregate.
    template <Aggregate A>
    Stream history(std::string_view id) {
        return load_stream(stream_name(aggregate_type<A>(), id));
    }
    /// One page of them (EventStore::load).
    template <Aggregate A>
    StreamPage history(std::string_view id, const PageOptions& page, Order order = Order::oldest_first) {
        return load_stream(stream_name(aggregate_type<A>(), id), page, order);
    }

    /// The aggregates of this type that have events, a page at a time, in the order of their ids' bytes; and the
    /// streams with names that begin with `prefix`, in the order of names (commands/stream_list.h). What was
    /// acknowledged before the first page was asked for is in the list. The first page takes into it what has been
    /// written since anybody last asked: at the first time it reads all events. Errors: InvalidError for a token of
    /// another list, and from inside a handler or body; ConfigError for a store without a feed (docs/feed.md);
    /// UnavailableError where nobody puts the events in order, or a transaction does not end; those of transact.
    template <Aggregate A>
    StreamListPage aggregates(const PageOptions& page = {});
    StreamListPage streams(std::string_view prefix, const PageOptions& page = {});

    /// A read model (rows/rows.h).
    template <ReadModel T>
    Rows<T> rows() {
        return Rows<T>{stored_rows()};
    }
    template <class T, VARVE_WHY(detail::RefusedReadModel<T>)>
    requires(!ReadModel<T>) detail::RefusedRows<T> rows()
    VARVE_REFUSED;

    /// From now on `projection` runs for every event that a command decides on an A, inside its transaction
    /// (commands/projection.h). ConfigError after the first execute, submit or transact, whose events it
    /// would miss, and for a second projection of its type, which would count everything twice.
    template <class A, class Projection>
    requires(!detail::RefusedProjection<A, Projection>::refused) void project(Projection projection = {}) {
        project(detail::aggregate_projection<A>(std::move(projection)));
    }
    template <class A, class Projection, VARVE_WHY(detail::RefusedProjection<A, Projection>)>
    requires(detail::RefusedProjection<A, Projection>::refused) void project(Projection projection = {}) VARVE_REFUSED;

    /// From now on `projection` follows the events of these aggregates in the background: first all that there are, in
    /// their order, then each as it is committed. Of all processes that call this, one does the work, under the
    /// projection's name (its own `name`, else the type's), or one for each of several partitions (FollowOptions); if
    /// it dies, another goes on where it was. Each event takes effect exactly once (commands/projection.h).
    ///
    ///     bank.follow<Account>(TurnoverByDay{});
    ///     bank.follow<Order, Customer>(Revenue{}, {.batch_max = 100});
    ///
    /// A projection that throws, or meets an event that cannot be read, stops and says where: followers(). What may
    /// pass, as a store that does not answer, it tries again. ConfigError for a store without a feed (docs/feed.md),
    /// for a name that is taken, and for options that cannot work.
    template <class... As, class Projection>
    requires(sizeof...(As) > 0 &&
             !detail::RefusedFollower<Projection, As...>::refused) void follow(Projection projection,
                                                                               const FollowOptions& options = {}) {
        const auto shared = std::make_shared<const Projection>(std::move(projection));
        follow(stored_name<Projection>(), {detail::shared_projection<As>(shared)...}, options);
    }
    template <class... As, class Projection, VARVE_WHY(detail::RefusedFollower<Projection, As...>)>
    requires(detail::RefusedFollower<Projection, As...>::refused) void follow(
        Projection projection, const FollowOptions& options = {}) VARVE_REFUSED;

    /// As follow, for what lies outside of this store: search engines, queues, caches. `handle` gets events in batches,
    /// one at a time and in order, at least once each: again if the process dies before the batch was noted as done.
    /// With several partitions it is called for each of them so, by a thread of its own.
    /// What it throws, other than an Error that may pass, stops the subscription.
    ///
    ///     bank.subscribe("search", [&](std::span<const varve::RecordedEvent> events) { index.add(events); });
    void subscribe(const std::string& name, std::function<void(std::span<const RecordedEvent>)> handle,
                   const SubscribeOptions& options = {});

    /// Waits until the projection has taken what this command has written, here or in another process; false if the
    /// time is over before, it has stopped, or it has set one of these streams aside. `Receipt{}`: all that was
    /// acknowledged before this call. Errors: InvalidError if this application has no such follower, and from its own
    /// handler; those of the store.
    ///
    ///     auto paid = shop.execute<Order>("o-17", Pay{card});
    ///     shop.wait_for<Revenue>(*paid, 2s);
    template <class Projection>
    [[nodiscard]] bool wait_for(const Receipt& receipt, Duration patience) {
        return wait_for(stored_name<Projection>(), receipt, patience);
    }
    [[nodiscard]] bool wait_for(std::string_view follower, const Receipt& receipt, Duration patience);

    /// How those are doing that this application has (commands/follower_status.h). Asks the store.
    std::vector<FollowerStatus> followers();
    /// The streams that one of these has set aside (FollowOptions::on_poison, commands/parked_stream.h).
    std::vector<ParkedStream> parked(std::string_view follower);
    /// Takes them up again, in this thread, whoever has the follower: each from the event that failed, in order, and
    /// each event of a projection exactly once. Returns how many have come up to the present; the rest stays aside.
    /// Errors: InvalidError if there is none of this name, and from its own handler; those of the store, and then what
    /// was taken before stays taken.
    std::size_t retry_parked(std::string_view follower);
    /// Folds all events of a projection again, in memory, and compares what comes of it with its rows, each at one
    /// moment: what differs is named (commands/verified.h). The projection and everybody else go on meanwhile. It
    /// must depend on nothing but its events and its own rows. Three things are named that are none: rows that
    /// another projection writes in the same table, and what depends on the order of several streams' events where it
    /// is inline, or streams were set aside (docs/following.md). For one that follows, by type or by name, and for an
    /// inline one, by type, which is taken to have been there for all events. Reads all events. `bytes_max`: memory
    /// for rows; an InvalidError says that more is needed. Errors: InvalidError if there is no such projection here,
    /// for a subscription, while streams are set aside, and where it throws or reads rows that others write;
    /// ConfigError for a store without a feed; else as transact.
    ///
    ///     for (const varve::RowDifference& one : bank.verify<TurnoverByDay>().differences) …
    template <class Projection>
    [[nodiscard]] Verified verify(std::size_t bytes_max = verify_bytes_max);
    [[nodiscard]] Verified verify(std::string_view follower, std::size_t bytes_max = verify_bytes_max);
    static constexpr std::size_t verify_bytes_max = std::size_t{256} << 20;
    /// Makes the rows of a projection anew from all events, beside those that are read, while everybody goes on. When
    /// they have caught up they are read in place of the old ones: all at once, and nobody goes back in time
    /// (docs/rebuilding.md). Returns when that is noted; it goes on in the processes that follow, whoever dies:
    /// followers(). A projection whose `version` is higher than the live one's begins this itself. Its read models say
    /// `kept_by`. ConfigError naming one that does not, and for a version below the live one; InvalidError for a
    /// subscription, and if there is no such follower here.
    template <class Projection>
    void rebuild() {
        rebuild(stored_name<Projection>());
    }
    void rebuild(std::string_view follower);
    /// For all processes, until it is resumed: a moment later none goes on with it. InvalidError if nothing is rebuilt.
    void pause_rebuild(std::string_view follower);
    void resume_rebuild(std::string_view follower);
    /// Ends a follower of this application when its batch is done; begun again, it goes on from there. InvalidError if
    /// there is none of this name, and from its own handler.
    void unfollow(std::string_view name);

    /// Makes the rows that projections keep for this aggregate alone (OwnRows in commands/projection.h) anew
    /// from its events, and returns how many of them did not match. It is one transaction; commands on the aggregate
    /// may run meanwhile. Of use when another program has appended events without the rows, or has changed the rows.
    /// ConfigError if no projection of A keeps such rows; else as transact.
    template <Aggregate A>
    std::size_t refold(std::string_view id) {
        return refold(aggregate_type<A>(), id);
    }
    template <class A, VARVE_WHY(detail::RefusedAggregate<A>)>
    requires(!Aggregate<A>) std::size_t refold(std::string_view id)
    VARVE_REFUSED;

    /// Makes the indexes of T's rows in the store those that T declares (rows/indexes.h), while everybody goes on: adds
    /// the entries that are missing, erases those that are wrong, or of an index that is declared no longer. Returns
    /// how many they were: 0 if all was right. Needed when an index is added to rows that exist, is changed or dropped:
    /// until then its queries are refused, and from its beginning on writers whose struct is another one.
    ///
    ///     shop.build_indexes<Customer>();  // once, after all programs have the new struct
    ///
    /// If old programs may still run, it first waits for the retention (transactions/options.h), by the end of which
    /// they know. May be stopped, and called again. Errors: ConfigError naming two rows with one value of a Unique, and
    /// if a program with another T begins to build meanwhile; else as transact.
    template <ReadModel T>
    std::size_t build_indexes(OldPrograms old = OldPrograms::may_run) {
        return build_indexes(detail::row_table<T>, old);
    }

    /// Settles a command that ended with InDoubtError, from any process: it has committed, or from now on it is aborted
    /// for ever. Takes InDoubtError::handle(). `undecided` only if the store did not answer the request that would have
    /// ended it; ask again. Errors: InvalidError if this is no such handle; UnavailableError if the store could not be
    /// read: nothing is known then, ask again; CorruptionError for a slot in a form that this version does not know.
    transactions::Verdict resolve(const TransactionHandle& transaction);

    /// Finishes what dead processes have left, in this thread, whether or not the application does so in the
    /// background. For tools that want a store at rest. True as soon as nothing is left; false if something is still
    /// left after `patience`, because somebody is writing or a dead owner's lease is not over. It looks at all
    /// that rows were ever kept in, whichever program did so. Reads the whole store if that keeps no order of changes.
    /// Errors: those of the store.
    bool settle(Duration patience);

    /// Locks by name, in the same store. Their handles must be gone before the application is destroyed.
    Locks& locks();        // locks/locks.h
    EventStore& events();  // events/event_store.h
    store::ItemStore& store();
    const Runtime& runtime() const;

    /// All that it has counted and measured since it was made, for whoever watches it, in the terms of Prometheus
    /// (docs/metrics.md; telemetry/metric.h; adapters/prometheus makes text of it). Asks the store how its followers
    /// are doing; where that fails, their metrics are missing and `varve_store_up` is 0.
    std::vector<telemetry::Metric> telemetry();
    // A part of it as typed values: transactions/metrics.h, aggregates/cache_metrics.h, commands/lane_metrics.h.
    const transactions::Metrics& metrics() const;
    const aggregates::CacheMetrics& cache_metrics() const;
    const LaneMetrics& lane_metrics() const;

  private:
    friend detail::ApplicationParts& detail::parts_of(Application& application);

    struct LoadedState {
        std::shared_ptr<const void> state;  ///< never null
        Version version;
    };
    template <class A>
    static Loaded<A> loaded(const LoadedState& loaded) {
        return {.state = *static_cast<const A*>(loaded.state.get()), .version = loaded.version};
    }
    /// Empty without a command id.
    template <class Command>
    static std::string fingerprint(const std::string& stream, std::string_view kind, const Command& command,
                                   const CommandOptions& options) {
        if (options.command_id.empty()) return {};
        std::string contents = options.contents;
        if (contents.empty()) detail::append_contents(contents, command);
        return detail::fingerprint(stream, kind, contents);
    }

    Outcome run(const std::function<void(Transaction&)>& body, const CommandOptions& options);
    Outcome execute(const AggregateType& type, const std::string& stream, const std::function<void(Transaction&)>& body,
                    const CommandOptions& options, std::string fingerprint);
    std::future<Outcome> submit(const AggregateType& type, const std::string& stream,
                                std::function<void(Transaction&)> body, CommandOptions options,
                                std::string fingerprint);
    LoadedState load(const AggregateType& type, std::string_view id);
    LoadedState load(const AggregateType& type, std::string_view id, AsOf as_of);
    Stream load_stream(const std::string& stream);
    StreamPage load_stream(const std::string& stream, const PageOptions& page, Order order);
    SnapshotCheck check_snapshot(const AggregateType& type, std::string_view id);
    void project(detail::AggregateProjection projection);
    void follow(std::string_view name, std::vector<detail::AggregateProjection> projections,
                const FollowOptions& options);
    Verified verify(std::string_view name, const std::type_info* type, std::size_t bytes_max);
    std::size_t refold(const AggregateType& type, std::string_view id);
    std::size_t build_indexes(const detail::RowTable& table, OldPrograms old);
    detail::RowsOfStore& stored_rows();

    const std::unique_ptr<detail::ApplicationParts> parts_;
};

}  // namespace varve
