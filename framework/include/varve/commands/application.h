#pragma once

#include <varve/commands/fingerprint.h>
#include <varve/commands/lane_options.h>
#include <varve/commands/transaction.h>
#include <varve/core/executor.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace varve {

namespace detail {
class CommandRunner;
class Lanes;
template <class A, class Projection>
struct RefusedProjection;

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

template <ReadModel T>
class Rows;

/// Errors: the constructor refuses what cannot work, with a ConfigError that names the option.
struct ApplicationOptions {
    RetryPolicy retry = {};      ///< of a command that loses against others
    Escalation escalation = {};  ///< what else it does if it keeps losing
    transactions::Options transactions = {};
    /// Whether this application finishes what died processes have left (transactions/sweeper.h), and how often it
    /// looks. On a store without an order of changes that means to scan it: `scan` says how fast.
    bool sweep = true;
    Duration sweep_interval = std::chrono::milliseconds{500};  ///< more than 0
    transactions::ScanOptions scan = {};
    std::size_t background_threads = 2;  ///< that finalise after the acknowledgement
    /// How much memory the last states of aggregates may take, so that a command need not read before it writes
    /// (aggregates/state_cache.h). 0: none is kept, each command and each load reads the whole stream.
    std::size_t cache_bytes_max = 64 << 20;
    LaneOptions lanes = {};
    LocksOptions locks = {};
    Runtime runtime = {};
    Executor* executor = nullptr;  ///< instead of threads of its own; must outlive the application
};

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
    ~Application();
    Application(const Application&) = delete;
    Application& operator=(const Application&) = delete;

    /// Decides and appends; again on conflict. Commands on one aggregate that are on their way at the same time are
    /// decided one after the other and appended together (lane_options.h); each keeps its own outcome.
    template <class A, class Command>
    requires(Decides<A, Command>) Outcome
        execute(std::string_view id, const Command& command, const CommandOptions& options = {}) {
        const std::string stream = stream_name(aggregate_type<A>(), id);
        return execute(
            stream,
            [&](Transaction& tx) {
                if (options.expected_version) check_version<A>(tx, id, *options.expected_version);
                tx.execute<A>(id, command);
            },
            options, fingerprint(stream, detail::command_name<Command>(), command, options));
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) Outcome
        execute(std::string_view id, const Command& command, const CommandOptions& options = {})
    VARVE_REFUSED;

    /// As execute, without waiting for it: many commands of one caller go together. What execute would throw, the
    /// future does; OverloadedError and InvalidError are thrown from here. Futures become ready in the order of the
    /// lane.
    template <class A, class Command>
    requires(Decides<A, Command>) std::future<Outcome> submit(std::string_view id, Command command,
                                                              CommandOptions options = {}) {
        const std::optional<Version> expected = options.expected_version;
        const std::string stream = stream_name(aggregate_type<A>(), id);
        std::string print = fingerprint(stream, detail::command_name<Command>(), command, options);
        return submit(
            stream,
            [id = std::string{id}, command = std::move(command), expected](Transaction& tx) {
                if (expected) check_version<A>(tx, id, *expected);
                tx.execute<A>(id, command);
            },
            std::move(options), std::move(print));
    }
    template <class A, class Command, VARVE_WHY(detail::RefusedCommand<A, Command>)>
    requires(!Decides<A, Command>) std::future<Outcome> submit(std::string_view id, Command command,
                                                               CommandOptions options = {})
    VARVE_REFUSED;

    /// Appends events that were decided elsewhere, as ONE slot: an import. Inline projections run for them, in the same
    /// transaction; EventStore::append would pass them by. As with execute, `expected_version` says what the aggregate
    /// must look like, and a command id makes a repeat harmless. Several aggregates go together by Transaction::append,
    /// which is the way to import many (docs/events.md):
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
            stream,
            [&](Transaction& tx) {
                if (options.expected_version) check_version<A>(tx, id, *options.expected_version);
                tx.append<A>(id, events);
            },
            options, fingerprint(stream, "append", events, options));
    }

    /// Runs `body` and commits what it decided, all or nothing: strictly serializable over aggregates and rows, what
    /// was only read included. Again on conflict.
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
        return loaded<A>(repository_.load(aggregate_type<A>(), stream_name(aggregate_type<A>(), id)));
    }
    template <class A, VARVE_WHY(detail::RefusedAggregate<A>)>
    requires(!Aggregate<A>) Loaded<A> load(std::string_view id)
    VARVE_REFUSED;
    template <Aggregate A>
    Loaded<A> load(std::string_view id, AsOf as_of) {
        return loaded<A>(load_as_of(aggregate_type<A>(), stream_name(aggregate_type<A>(), id), as_of));
    }

    /// Compares the snapshot of an aggregate, if there is one, with what its events say: reads the whole stream.
    template <Aggregate A>
    SnapshotCheck check_snapshot(std::string_view id) {
        return repository_.check_snapshot(aggregate_type<A>(), stream_name(aggregate_type<A>(), id));
    }

    /// The events of one aggregate.
    template <Aggregate A>
    Stream history(std::string_view id) {
        return events_.load(stream_name(aggregate_type<A>(), id));
    }

    /// A read model (projections/rows.h).
    template <ReadModel T>
    Rows<T> rows();
    template <class T, VARVE_WHY(detail::RefusedReadModel<T>)>
    requires(!ReadModel<T>) detail::RefusedRows<T> rows()
    VARVE_REFUSED;

    /// From now on `projection` runs for every event that a command decides on an A, inside its transaction
    /// (projections/inline_projection.h). ConfigError after the first execute, submit or transact, whose events it would
    /// miss, and for a second projection of its type, which would count everything twice.
    template <class A, class Projection>
    requires(!detail::RefusedProjection<A, Projection>::refused) void project(Projection projection = {});
    template <class A, class Projection, VARVE_WHY(detail::RefusedProjection<A, Projection>)>
    requires(detail::RefusedProjection<A, Projection>::refused) void project(Projection projection = {}) VARVE_REFUSED;

    /// Learns the outcome of a command that ended with InDoubtError, from any process: committed, or from now on
    /// aborted for ever. Takes InDoubtError::transaction(). Errors: as Coordinator::resolve.
    transactions::Verdict resolve(std::string_view transaction) { return coordinator_.resolve(transaction); }

    /// Locks by name, in the same store. Their handles must be gone before the application is destroyed.
    Locks& locks() { return locks_; }

    EventStore& events() { return events_; }
    transactions::Coordinator& coordinator() { return coordinator_; }
    const transactions::Metrics& metrics() { return coordinator_.metrics(); }
    const aggregates::CacheMetrics& cache_metrics() const { return repository_.cache_metrics(); }
    const LaneMetrics& lane_metrics() const;

    /// What rows.h and inline_projection.h need.
    RowTables& row_tables() { return row_tables_; }
    void add_projection(const AggregateType& aggregate, const NamedType& projection,
                        std::function<void(Transaction&, const DecidedEvent&)> run);

  private:
    template <class A>
    static Loaded<A> loaded(const aggregates::Folded& folded) {
        return {.state = *static_cast<const A*>(folded.state.get()), .version = folded.head};
    }
    template <class A>
    static void check_version(Transaction& tx, std::string_view id, Version expected) {
        const Version actual = tx.version<A>(id);
        if (actual != expected) reject_version(stream_name(aggregate_type<A>(), id), actual, expected);
    }
    [[noreturn]] static void reject_version(const std::string& stream, Version actual, Version expected);

    Outcome run(const std::function<void(Transaction&)>& body, const CommandOptions& options);
    /// Empty without a command id.
    template <class Command>
    static std::string fingerprint(const std::string& stream, std::string_view kind, const Command& command,
                                   const CommandOptions& options) {
        if (options.command_id.empty()) return {};
        std::string contents = options.contents;
        if (contents.empty()) detail::append_contents(contents, command);
        return detail::fingerprint(stream, kind, contents);
    }
    Outcome execute(const std::string& stream, const std::function<void(Transaction&)>& body,
                    const CommandOptions& options, std::string fingerprint);
    std::future<Outcome> submit(const std::string& stream, std::function<void(Transaction&)> body,
                                CommandOptions options, std::string fingerprint);
    aggregates::Folded load_as_of(const AggregateType& type, const std::string& stream, AsOf as_of);
    void sweep(const std::stop_token& stop);
    /// From here on it is too late for another projection.
    void begin_command() {
        if (!commanded_.load(std::memory_order_relaxed)) commanded_ = true;
    }

    std::shared_ptr<store::ItemStore> store_;
    const ApplicationOptions options_;
    std::unique_ptr<Executor> threads_;  // unless the options bring one
    Executor& executor_;
    transactions::Coordinator coordinator_;
    Locks locks_;
    Locks turns_;  // of commands that keep losing
    RowTables row_tables_;
    aggregates::Repository repository_;
    EventStore events_;
    detail::InlineProjections projections_;
    std::atomic<bool> commanded_ = false;
    std::unique_ptr<detail::CommandRunner> runner_;
    std::unique_ptr<detail::Lanes> lanes_;
    std::jthread sweeper_;  // last: it uses all the others
};

}  // namespace varve
