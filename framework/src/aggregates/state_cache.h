#pragma once

#include "transactions/row.h"
#include "transactions/slot.h"

#include <varve/aggregates/aggregate.h>
#include <varve/aggregates/cache_metrics.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve::aggregates {

/// A row that is written with the events of one aggregate only.
struct KnownRow {
    store::Key key;
    transactions::Image image;
};
using KnownRows = std::vector<KnownRow>;

/// What a process remembers of an aggregate: its state at one version of its stream.
///
/// Nobody writes slot n + 1 unless it has seen slot n committed and finalised. Both are for ever: so one look at slot n
/// is enough, however long ago it was. If the stream has moved on since, slot n + 1 is taken and the write is refused.
/// `settled` says that slot `head` has been seen so, and therefore that slot head + 1 may be written without asking the
/// store. It is set
///
///  - of what was read, unless the last slot was still claimed in place (StreamRead::unfinalised);
///  - of what this process wrote as committed at once: a plain append, an atomic request, a protocol's primary;
///  - of the other slots of a protocol commit when this process has finalised them, in the background.
///
/// Until then these are pending, which may be long after the acknowledgement. Such a state is true all the same; it
/// spares the fold, not the look at its slot.
struct Known {
    std::shared_ptr<const void> state;  ///< shared by all who use it; nobody changes it
    Version head = 0;
    transactions::Epoch next_epoch = 0;  ///< at which slot head + 1 was last seen free; may have grown since
    bool settled = false;
    Version snapshot = 0;                        ///< the last version that a snapshot is known of, or on its way
    std::size_t bytes_since = 0;                 ///< of events after it
    std::shared_ptr<const KnownRows> rows = {};  ///< as of `head`, which no claim was on; null: not known
};

/// The last known states of the aggregates used most recently, bounded by bytes: whoever was used longest ago goes
/// first. What it holds may be out of date, never wrong.
///
/// A large cache consists of shards that do not wait for each other; then "longest ago" is that of a shard.
///
/// Threads: all methods may be called from any thread. No state is copied or destroyed inside.
class StateCache {
  public:
    /// `bytes_max` 0: remembers nothing.
    explicit StateCache(std::size_t bytes_max);
    ~StateCache();

    std::optional<Known> find(const AggregateType& type, const std::string& stream);
    /// Keeps it unless something newer is there already, or it is larger than the cache.
    void put(const AggregateType& type, const std::string& stream, Known known);

    const CacheMetrics& metrics() const { return metrics_; }

  private:
    struct Shard;
    Shard& shard(const std::string& stream);

    std::size_t shard_bytes_max_;
    std::size_t shards_count_;
    std::unique_ptr<Shard[]> shards_;
    CacheMetrics metrics_;
};

}  // namespace varve::aggregates
