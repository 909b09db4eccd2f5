#pragma once

#include <varve/aggregates/aggregate.h>
#include <varve/transactions/settled_reader.h>

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace varve::aggregates {

/// An aggregate as folded from its stream.
struct Folded {
    std::shared_ptr<void> state;  ///< the caller's own; never null
    transactions::Version head = 0;
    transactions::Free next = {};  ///< how slot head + 1 is free; meaningful if it was read to be built on
};

/// Loads and folds. Remembers the last committed states of the aggregates used most recently, so that a load reads only
/// the slots that came since; what it remembers is never returned without asking the store.
///
/// Threads: all methods may be called from any thread.
class Repository {
  public:
    /// `remembered_max`: how many aggregates' states are kept; 0: none.
    Repository(transactions::Coordinator& coordinator, std::size_t remembered_max);

    /// Read committed, through other transactions' claims.
    Folded load(const AggregateType& type, const std::string& stream);
    /// To be built on: waits as SettledReader does.
    Folded load(const AggregateType& type, const std::string& stream, transactions::SettledReader& reader);
    /// As of a version, which may be beyond the head.
    Folded load_at(const AggregateType& type, const std::string& stream, transactions::Version last);
    /// As of a moment: up to the last slot whose time is not later.
    Folded load_as_of(const AggregateType& type, const std::string& stream, Time moment);

  private:
    struct Entry {
        std::string stream;
        const AggregateType* type;
        std::shared_ptr<const void> state;
        transactions::Version head;
    };

    Folded recall(const AggregateType& type, const std::string& stream);
    void remember(const AggregateType& type, const std::string& stream, const Folded& folded);
    Folded fold(const AggregateType& type, const std::string& stream, auto read);

    transactions::Coordinator& coordinator_;
    const std::size_t remembered_max_;
    std::mutex mutex_;
    std::list<Entry> recent_;                                              // guarded by mutex_: used last comes first
    std::unordered_map<std::string, std::list<Entry>::iterator> entries_;  // guarded by mutex_
};

}  // namespace varve::aggregates
