#pragma once

#include <varve/aggregates/state_cache.h>
#include <varve/transactions/settled_reader.h>

#include <memory>
#include <mutex>
#include <string>

namespace varve::aggregates {

/// An aggregate as folded from its stream.
struct Folded {
    std::shared_ptr<const void> state;  ///< never null; others may hold it too
    transactions::Version head = 0;
    transactions::Free next = {};        ///< how slot head + 1 is free; meaningful if it was read to be built on
    transactions::Version snapshot = 0;  ///< as Known says
    std::size_t bytes_since = 0;
    bool asked = true;  ///< the store, just now; else it is what was last known
};

/// Loads and folds. Remembers the last states of the aggregates used most recently, so that a load reads only the slots
/// that came since; and stores snapshots of those that want it, in the background.
///
/// Threads: all methods may be called from any thread.
class Repository {
  public:
    /// `cache_bytes_max`: how much memory the remembered states may take; 0: none are.
    /// `background` must be drained before the Repository is destroyed.
    Repository(transactions::Coordinator& coordinator, Executor& background, std::size_t cache_bytes_max);

    /// Read committed, through other transactions' claims.
    Folded load(const AggregateType& type, const std::string& stream);
    /// To be built on: waits as SettledReader does. `last_known` is content with what was last known, if that is
    /// settled: the commit finds out whether it is out of date, and whatever does not end in a write must be validated.
    enum class Ask { store, last_known };
    Folded load(const AggregateType& type, const std::string& stream, transactions::SettledReader& reader, Ask ask);
    /// To be built on, of a stream that the caller holds at `head`: without a request, if that is what was last known.
    Folded load_at_head(const AggregateType& type, const std::string& stream, transactions::SettledReader& reader,
                        transactions::Version head);
    /// What a commit has made of an aggregate as it was seen.
    struct Written {
        std::shared_ptr<const void> state;
        std::size_t event_bytes;  ///< of the slot after the one that was seen last
        bool settled;             ///< as Known says
    };
    void remember(const AggregateType& type, const std::string& stream, const Folded& seen, Written written) noexcept;
    /// As of a version, which may be beyond the head.
    Folded load_at(const AggregateType& type, const std::string& stream, transactions::Version last);
    /// As of a moment: up to the last slot whose time is not later.
    Folded load_as_of(const AggregateType& type, const std::string& stream, Time moment);

    /// Folds the events that a snapshot stands for, and puts both side by side.
    SnapshotCheck check_snapshot(const AggregateType& type, const std::string& stream);

    const CacheMetrics& cache_metrics() const { return cache_.metrics(); }

  private:
    Folded fold(const AggregateType& type, const std::string& stream, Known known, auto read_from);

    /// Keeps it, and takes a snapshot if it is time.
    void keep(const AggregateType& type, const std::string& stream, Known known, Duration load_time);
    Known from_snapshot(const AggregateType& type, const std::string& stream);
    void ensure_snapshots_table();

    transactions::Coordinator& coordinator_;
    Executor& background_;
    StateCache cache_;
    std::once_flag snapshots_table_;
};

}  // namespace varve::aggregates
