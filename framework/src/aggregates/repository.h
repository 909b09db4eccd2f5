#pragma once

#include "aggregates/state_cache.h"
#include "core/named_types.h"
#include "transactions/settled_reader.h"

#include <varve/core/mutex.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace varve::aggregates {

/// An aggregate as folded from its stream.
struct Folded {
    std::shared_ptr<const void> state;  ///< never null; others may hold it too
    Version head = 0;
    transactions::Free next = {};  ///< how slot head + 1 is free; meaningful if it was read to be built on
    Version snapshot = 0;          ///< as Known says
    std::size_t bytes_since = 0;
    bool asked = true;                           ///< the store, just now; else it is what was last known
    std::shared_ptr<const KnownRows> rows = {};  ///< as Known says; null if the store was asked
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

    /// Every type that is loaded is met. ConfigError if another one of its name was.
    void meet(const AggregateType& type) {
        if (!types_.knows(type.named)) add(type);
    }
    /// The type of this name that was met; nullptr: none was.
    const AggregateType* known(std::string_view name) const;

    /// Read committed, through other transactions' claims.
    Folded load(const AggregateType& type, const std::string& stream);
    /// To be built on: waits as SettledReader does. `last_known` is content with what was last known, if that is
    /// settled: the commit finds out whether it is out of date, and whatever does not end in a write must be validated.
    /// Several are loaded in one round trip: what each is going to read is asked for in between.
    ///
    ///     std::vector<Repository::Sought> sought{repository.seek(type, "account-alice", ask), …};
    ///     for (const auto& one : sought) repository.want(one, ahead);
    ///     reader.read_ahead(ahead);
    ///     for (auto& one : sought) repository.load(std::move(one), reader);
    enum class Ask { store, last_known };
    struct Sought {
        const AggregateType& type;
        std::string stream;
        Known known;
        Ask ask;
        /// The last version, of a stream that the caller holds behind it.
        std::optional<Version> held = {};
        bool is_held() const { return held && known.state && known.head == *held; }
        bool is_new() const { return held == Version{0}; }
        bool is_enough() const { return known.settled && (is_held() || ask == Ask::last_known); }
    };
    Sought seek(const AggregateType& type, const std::string& stream, Ask ask);
    /// The same of a stream that the caller holds after version `head`.
    Sought seek_held(const AggregateType& type, const std::string& stream, Version head);
    void want(const Sought& sought, transactions::SettledReader::Ahead& ahead);
    Folded load(Sought sought, transactions::SettledReader& reader);
    /// What a commit has made of an aggregate as it was seen.
    struct NewState {
        std::shared_ptr<const void> state;
        std::size_t event_bytes;                ///< of the slot after the one that was seen last
        bool settled;                           ///< as Known says
        std::shared_ptr<const KnownRows> rows;  ///< as Known says
    };
    void remember(const AggregateType& type, const std::string& stream, const Folded& seen, NewState made) noexcept;
    /// As of a version, which may be beyond the head.
    Folded load_at(const AggregateType& type, const std::string& stream, Version last);
    /// As of a moment: up to the last slot whose time is not later.
    Folded load_as_of(const AggregateType& type, const std::string& stream, Time moment);

    /// Folds the events that a snapshot stands for, and puts both side by side.
    SnapshotCheck check_snapshot(const AggregateType& type, const std::string& stream);

    const CacheMetrics& cache_metrics() const { return cache_.metrics(); }

  private:
    void add(const AggregateType& type);
    Folded fold(const AggregateType& type, const std::string& stream, Known known, auto read_item, auto read_from);

    /// Keeps it, and takes a snapshot if it is time.
    void keep(const AggregateType& type, const std::string& stream, Known known, Duration load_time);
    Known from_snapshot(const AggregateType& type, const std::string& stream, const std::optional<store::Item>& item);
    void ensure_snapshots_table();

    transactions::Coordinator& coordinator_;
    Executor& background_;
    NamedTypes types_{"aggregate"};
    mutable Mutex mutex_;
    std::map<std::string_view, const AggregateType*> known_ VARVE_GUARDED_BY(mutex_);
    StateCache cache_;
    std::once_flag snapshots_table_;
};

}  // namespace varve::aggregates
