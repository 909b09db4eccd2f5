#include <varve/aggregates/state_cache.h>

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
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
constexpr std::size_t part_bytes_least = 4 << 20;
constexpr std::size_t parts_max = 16;

/// What the cache itself needs for an entry: the list's node, the map's, the state's reference count.
constexpr std::size_t overhead_bytes = sizeof(Entry) + 14 * sizeof(void*);

}  // namespace

struct StateCache::Part {
    std::mutex mutex;
    std::list<Entry> recent;                                                     // guarded by mutex: used last is first
    std::unordered_map<std::string_view, std::list<Entry>::iterator> by_stream;  // guarded by mutex; into `recent`
    std::size_t bytes = 0;                                                       // guarded by mutex
};

StateCache::StateCache(std::size_t bytes_max)
    : part_bytes_max_(bytes_max),
      parts_count_(std::clamp<std::size_t>(bytes_max / part_bytes_least, 1, parts_max)),
      parts_(std::make_unique<Part[]>(parts_count_)) {
    part_bytes_max_ /= parts_count_;
}

StateCache::~StateCache() = default;

StateCache::Part& StateCache::part(const std::string& stream) {
    return parts_[parts_count_ == 1 ? 0 : std::hash<std::string>{}(stream) % parts_count_];
}

std::optional<Known> StateCache::find(const AggregateType& type, const std::string& stream) {
    if (part_bytes_max_ == 0) return std::nullopt;
    Part& part = this->part(stream);
    {
        const std::lock_guard lock{part.mutex};
        const auto found = part.by_stream.find(stream);
        if (found != part.by_stream.end() && found->second->type == &type) {
            part.recent.splice(part.recent.begin(), part.recent, found->second);
            metrics_.hits.fetch_add(1, std::memory_order_relaxed);
            return found->second->known;
        }
    }
    metrics_.misses.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
}

void StateCache::put(const AggregateType& type, const std::string& stream, Known known) {
    if (part_bytes_max_ == 0) return;
    const std::size_t bytes = type.bytes(known.state.get()) + stream.size() + overhead_bytes;
    Part& part = this->part(stream);
    std::list<Entry> fresh;
    fresh.push_back({stream, &type, std::move(known), bytes});
    std::list<Entry> gone;  // destroyed when the lock is no longer held

    const std::lock_guard lock{part.mutex};
    const std::size_t before = part.bytes;
    const auto entry = fresh.begin();
    const bool fits = bytes <= part_bytes_max_;
    const auto found = part.by_stream.find(stream);
    if (found == part.by_stream.end()) {
        if (!fits) return;
        part.by_stream.emplace(entry->stream, entry);  // nothing after it may throw
    } else {
        const Entry& old = *found->second;
        const Known& mine = fresh.front().known;
        const bool newer = mine.head > old.known.head ||
                           (mine.head == old.known.head &&
                            (mine.settled > old.known.settled ||
                             (mine.settled == old.known.settled && mine.next_epoch > old.known.next_epoch)));
        if (old.type == &type && !newer) return;
        part.bytes -= old.bytes;
        gone.splice(gone.end(), part.recent, found->second);
        auto node = part.by_stream.extract(found);
        node.key() = entry->stream;
        node.mapped() = entry;
        if (fits) part.by_stream.insert(std::move(node));
    }
    const std::size_t kept = gone.size();
    if (fits) {
        part.recent.splice(part.recent.begin(), fresh);
        part.bytes += bytes;
        while (part.bytes > part_bytes_max_) {
            const auto last = std::prev(part.recent.end());
            part.bytes -= last->bytes;
            part.by_stream.erase(last->stream);
            gone.splice(gone.end(), part.recent, last);
        }
    }
    metrics_.evicted.fetch_add(gone.size() - kept, std::memory_order_relaxed);
    metrics_.entries.fetch_add((fits ? 1 : 0) - gone.size(), std::memory_order_relaxed);
    metrics_.bytes.fetch_add(part.bytes - before, std::memory_order_relaxed);
}

}  // namespace varve::aggregates
