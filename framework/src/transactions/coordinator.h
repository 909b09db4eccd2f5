#pragma once

#include "transactions/plan.h"
#include "transactions/reader.h"
#include "transactions/resolver.h"

#include <varve/core/executor.h>
#include <varve/transactions/outcome.h>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <variant>

namespace varve::transactions {

class EndedWrites;
class Finaliser;

/// Committed and acknowledged: visible for ever, to everybody.
struct Commit {
    std::string tx;
    Path path;
    store::Key primary = {};  ///< the slot that says so; empty if there is none: nothing or a single row was written
    bool waited = false;      ///< others were in its way
};

/// Lost against others; certain never to commit. Nothing of it is visible or ever will be.
struct Conflict {
    std::string what;     ///< the item and what was met there, for the message after the last attempt
    bool over;            ///< the other one has finished: a new attempt need not wait
    bool waited = false;  ///< others were in its way
    ConflictDetails details = {};
};

/// Commits plans: the protocol's owner side. The protocol itself is described in docs/protocol.md, step by step as
/// here.
///
///     const auto outcome = coordinator.commit(plan, tx, since);
///     if (const auto* conflict = std::get_if<Conflict>(&outcome)) …   // decide again, under a new id
///
/// Threads: all methods may be called from any thread. The executor, which runs what follows the acknowledgement, must
/// be drained before the Coordinator is destroyed.
class Coordinator {
  public:
    /// `bell_shards`: in how many shards commits are announced; 0: they are not (bell.h). ConfigError that names the
    /// option if one cannot work (options.h).
    Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options,
                unsigned bell_shards = 0);
    ~Coordinator();

    /// Settles a transaction whose outcome its owner could not learn (InDoubtError::handle): it is committed, or
    /// from now on aborted for ever. `undecided` only if the store did not answer what would
    /// have ended it; ask again.
    /// Errors: InvalidError for what is no such handle; UnavailableError if the store could not be read, after which
    /// nothing is known and it may be asked again; CorruptionError for a primary in a form that is not known.
    Verdict resolve(const TransactionHandle& transaction);

    /// One attempt to commit `plan` as transaction `tx` (a new id for every attempt), with the priority of a command
    /// that began at `since`.
    /// Errors: InDoubtError if the store did not answer in time and the outcome is unknown; after all others certainly
    /// nothing was committed, nor will be: those of the store, InvalidError for an item beyond the store's limit,
    /// CorruptionError for what is met and cannot be read.
    std::variant<Conflict, Commit> commit(const Plan& plan, const std::string& tx, Time since,
                                          SteadyTime until = SteadyTime::max());

    /// Announces slots that `tx` has committed, where its owner may have died before it could: before somebody else
    /// acknowledges them. Nothing where commits are not announced. Errors: those of the store.
    void announce(const std::string& tx, std::span<const store::Key> slots);

    /// Undoes what a transaction has left that is certain never to commit: at once, or if the store does not answer, in
    /// the background for as long as it may take.
    void let_go(std::vector<store::Write> undoes);

    Reader& reader() { return reader_; }
    Resolver& resolver() { return resolver_; }
    store::ItemStore& store() { return store_; }
    Runtime runtime() const { return runtime_; }
    const Options& options() const { return options_; }
    /// How long an attempt waits for another transaction: somewhat longer than a lease, so that it sees the end of one
    /// that began when they met.
    Duration wait_max() const { return options_.lease + options_.lease / 4; }
    /// Whether a primary is marked as done when the rows of its transaction are in place. Where the store keeps an
    /// order of changes, what is left of them shows up there, and a committed slot that is written again would come
    /// behind its successors.
    bool marks_done() const;
    bool announces() const { return bell_shards_ > 0; }
    unsigned bell_shards() const { return bell_shards_; }
    Metrics& metrics() { return metrics_; }

  private:
    friend class Committer;

    store::ItemStore& store_;
    const store::Capabilities capabilities_;
    Runtime runtime_;
    Options options_;
    const unsigned bell_shards_;
    Metrics metrics_;
    Resolver resolver_;
    Reader reader_;
    std::unique_ptr<Finaliser> finaliser_;
    std::unique_ptr<EndedWrites> ended_writes_;
    const std::exception_ptr in_doubt_without_memory_;  // made while there is some
};

}  // namespace varve::transactions
