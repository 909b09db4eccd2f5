#pragma once

#include <varve/aggregates/state_cache.h>
#include <varve/transactions/settled_reader.h>

#include <memory>
#include <string>

namespace varve::aggregates {

/// An aggregate as folded from its stream.
struct Folded {
    std::shared_ptr<const void> state;  ///< never null; others may hold it too
    transactions::Version head = 0;
    transactions::Free next = {};  ///< how slot head + 1 is free; meaningful if it was read to be built on
    bool asked = true;             ///< the store, just now; else it is what was last known
};

/// Loads and folds. Remembers the last states of the aggregates used most recently, so that a load reads only the slots
/// that came since.
///
/// Threads: all methods may be called from any thread.
class Repository {
  public:
    /// `cache_bytes_max`: how much memory the remembered states may take; 0: none are.
    Repository(transactions::Coordinator& coordinator, std::size_t cache_bytes_max);

    /// Read committed, through other transactions' claims.
    Folded load(const AggregateType& type, const std::string& stream);
    /// To be built on: waits as SettledReader does. `last_known` is content with what was last known, if that is
    /// settled: the commit finds out whether it is out of date, and whatever does not end in a write must be validated.
    enum class Ask { store, last_known };
    Folded load(const AggregateType& type, const std::string& stream, transactions::SettledReader& reader, Ask ask);
    /// What a commit has made of an aggregate. `settled` as Known says.
    void remember(const AggregateType& type, const std::string& stream, std::shared_ptr<const void> state,
                  transactions::Version head, bool settled);
    /// As of a version, which may be beyond the head.
    Folded load_at(const AggregateType& type, const std::string& stream, transactions::Version last);
    /// As of a moment: up to the last slot whose time is not later.
    Folded load_as_of(const AggregateType& type, const std::string& stream, Time moment);

    const CacheMetrics& cache_metrics() const { return cache_.metrics(); }

  private:
    Folded fold(const AggregateType& type, const std::string& stream, const Known& known, auto read_from);

    transactions::Coordinator& coordinator_;
    StateCache cache_;
};

}  // namespace varve::aggregates
