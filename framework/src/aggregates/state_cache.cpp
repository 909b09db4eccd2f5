#include "aggregates/state_cache.h"

#include <varve/core/mutex.h>

#include <algorithm>
#include <functional>
#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace varve::aggregates {
namespace {

struct Entry {
    std::string stream;
    const AggregateType* type;
    Known known;
    std::size_t bytes;
};

/// Below this many bytes a cache is one part, and exact about who was used last.
constexpr std::size_t shard_bytes_least = 4 << 20;
constexpr std::size_t shards_max = 16;

/// What the cache itself needs for an entry: the list's node, the map's, the state's reference count.
constexpr std::size_t overhead_bytes = sizeof(Entry) + 14 * sizeof(void*);

std::size_t bytes_of(const std::shared_ptr<const KnownRows>& rows) {
    std::size_t bytes = 0;
    if (!rows) return bytes;
    for (const auto& [key, image] : *rows) {
        bytes += sizeof(KnownRow) + key.table.size() + key.partition.size();
        for (const auto& text : {image.data, image.rev}) bytes += text ? text->size() : 0;
        for (const auto& [id, until] : image.writers) bytes += id.size() + 8 * sizeof(void*);
    }
    return bytes;
}

}  // namespace

struct StateCache::Shard {
    Mutex mutex;
    std::list<Entry> recent VARVE_GUARDED_BY(mutex);  // used last is first
    std::unordered_map<std::string_view, std::list<Entry>::iterator> by_stream
        VARVE_GUARDED_BY(mutex);  // into `recent`
    std::size_t bytes VARVE_GUARDED_BY(mutex) = 0;
};

StateCache::StateCache(std::size_t bytes_max)
    : shard_bytes_max_(bytes_max),
      shards_count_(std::clamp<std::size_t>(bytes_max / shard_bytes_least, 1, shards_max)),
      shards_(std::make_unique<Shard[]>(shards_count_)) {
    shard_bytes_max_ /= shards_count_;
}

StateCache::~StateCache() = default;

StateCache::Shard& StateCache::shard(const std::string& stream) {
    return shards_[shards_count_ == 1 ? 0 : std::hash<std::string>{}(stream) % shards_count_];
}

std::optional<Known> StateCache::find(const AggregateType& type, const std::string& stream) {
    if (shard_bytes_max_ == 0) return std::nullopt;
    Shard& shard = this->shard(stream);
    {
        const MutexLock lock{shard.mutex};
        const auto found = shard.by_stream.find(stream);
        if (found != shard.by_stream.end() && found->second->type == &type) {
            shard.recent.splice(shard.recent.begin(), shard.recent, found->second);
            metrics_.hits.fetch_add(1, std::memory_order_relaxed);
            return found->second->known;
        }
    }
    metrics_.misses.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
}

void StateCache::put(const AggregateType& type, const std::string& stream, Known known) {
    if (shard_bytes_max_ == 0) return;
    const std::size_t bytes = type.bytes(known.state.get()) + stream.size() + bytes_of(known.rows) + overhead_bytes;
    Shard& shard = this->shard(stream);
    std::list<Entry> fresh;
    fresh.push_back({stream, &type, std::move(known), bytes});
    std::list<Entry> gone;  // destroyed when the lock is no longer held

    const MutexLock lock{shard.mutex};
    const std::size_t before = shard.bytes;
    const auto entry = fresh.begin();
    const bool fits = bytes <= shard_bytes_max_;
    const auto found = shard.by_stream.find(stream);
    if (found == shard.by_stream.end()) {
        if (!fits) return;
        shard.by_stream.emplace(entry->stream, entry);  // nothing after it may throw
    } else {
        const Entry& old = *found->second;
        const Known& mine = fresh.front().known;
        const bool newer = mine.head > old.known.head ||
                           (mine.head == old.known.head &&
                            (mine.settled > old.known.settled ||
                             (mine.settled == old.known.settled && mine.next_epoch > old.known.next_epoch)));
        if (old.type == &type && !newer) return;
        shard.bytes -= old.bytes;
        gone.splice(gone.end(), shard.recent, found->second);
        auto node = shard.by_stream.extract(found);
        node.key() = entry->stream;
        node.mapped() = entry;
        if (fits) shard.by_stream.insert(std::move(node));
    }
    const std::size_t kept = gone.size();
    if (fits) {
        shard.recent.splice(shard.recent.begin(), fresh);
        shard.bytes += bytes;
        while (shard.bytes > shard_bytes_max_) {
            const auto last = std::prev(shard.recent.end());
            shard.bytes -= last->bytes;
            shard.by_stream.erase(last->stream);
            gone.splice(gone.end(), shard.recent, last);
        }
    }
    metrics_.evicted.fetch_add(gone.size() - kept, std::memory_order_relaxed);
    metrics_.entries.fetch_add((fits ? 1 : 0) - gone.size(), std::memory_order_relaxed);
    metrics_.bytes.fetch_add(shard.bytes - before, std::memory_order_relaxed);
}

}  // namespace varve::aggregates
