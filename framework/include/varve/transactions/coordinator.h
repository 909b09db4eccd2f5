#pragma once

#include <varve/core/executor.h>
#include <varve/transactions/path.h>
#include <varve/transactions/plan.h>
#include <varve/transactions/reader.h>
#include <varve/transactions/resolver.h>

#include <memory>
#include <string>
#include <variant>

namespace varve::transactions {

class Finaliser;
class PatientStore;

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
    /// ConfigError that names the option if one cannot work (options.h).
    Coordinator(store::ItemStore& store, Runtime runtime, Executor& background, Options options);
    ~Coordinator();

    /// Settles a transaction whose outcome its owner could not learn (InDoubtError::transaction): it is committed, or
    /// from now on aborted for ever. `undecided` only if the store did not answer what would
    /// have ended it; ask again.
    /// Errors: InvalidError for what is no such handle; UnavailableError if the store could not be read, after which
    /// nothing is known and it may be asked again; CorruptionError for a primary in a form that is not known.
    Verdict resolve(std::string_view transaction);

    /// One attempt to commit `plan` as transaction `tx` (a new id for every attempt), with the priority of a command
    /// that began at `since`.
    /// Errors: InDoubtError if the store did not answer in time and the outcome is unknown; after all others certainly
    /// nothing was committed, nor will be: those of the store, InvalidError for an item beyond the store's limit,
    /// CorruptionError for what is met and cannot be read.
    std::variant<Commit, Conflict> commit(const Plan& plan, const std::string& tx, Time since);

    /// In the background, as often as it takes: undoes what transactions have left that are certain never to commit.
    void let_go(std::vector<store::Write> undoes);

    Reader& reader() { return reader_; }
    Resolver& resolver() { return resolver_; }
    /// Whose reads are repeated for `answer_time_max`, like writes.
    store::ItemStore& store() { return store_; }
    /// Whether this is the store that it was made for.
    bool is_on(const store::ItemStore& store) const;
    Runtime runtime() const { return runtime_; }
    const Options& options() const { return options_; }
    Metrics& metrics() { return metrics_; }

  private:
    friend class Attempt;

    const std::unique_ptr<PatientStore> patient_;
    store::ItemStore& store_;
    const store::Capabilities capabilities_;
    Runtime runtime_;
    Options options_;
    Metrics metrics_;
    Resolver resolver_;
    Reader reader_;
    std::unique_ptr<Finaliser> finaliser_;
};

}  // namespace varve::transactions
