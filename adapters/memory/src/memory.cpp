#include <varve/core/mutex.h>
#include <varve/memory/memory.h>
#include <varve/store/adapter.h>
#include <varve/store/page_token.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>

#include <tbb/concurrent_unordered_map.h>

// How it is built. A table is a hash map of partitions, a partition a sorted map of its items under a lock of its own:
// writers of different partitions never wait for each other, except for the moment in which their changes are numbered.
// Items are immutable once stored, so that whoever found one copies it after the lock is gone.
//
// Locks are taken in this order: partitions by ascending address, then a table's order of changes.

namespace varve::memory {
namespace {

using namespace store;

struct Stored {
    Record record;
    std::size_t bytes;
    Position position = 0;  // written once, while the change is numbered
};
using StoredItem = std::shared_ptr<const Stored>;

/// The items of a page; copied when no lock is held any more.
class Found {
  public:
    explicit Found(std::size_t limit) : limit_(limit) {}

    bool is_full() const { return items_.size() >= limit_ || bytes_ >= page_bytes; }
    void add(StoredItem item) {
        bytes_ += item->bytes;
        items_.push_back(std::move(item));
    }
    const std::vector<StoredItem>& items() const { return items_; }
    Page page() const {
        Page page;
        for (const StoredItem& item : items_) page.records.push_back(item->record);
        return page;
    }

  private:
    const std::size_t limit_;
    std::size_t bytes_ = 0;
    std::vector<StoredItem> items_;
};

/// Grows only: nothing is ever removed, so references stay good, and a walk can go on from anywhere. With the standard
/// allocator, because the thread sanitizer cannot see into oneTBB's.
template <class Value>
using ByName = tbb::concurrent_unordered_map<std::string, Value, std::hash<std::string>, std::equal_to<std::string>,
                                             std::allocator<std::pair<const std::string, Value>>>;

/// Which item was changed last at which position. Positions are given under the lock, so nobody can see one before all
/// smaller ones are there.
class ChangeOrder {
  public:
    using Node = std::map<Position, StoredItem>::node_type;

    /// `before` is what `after` replaces; one of them may be null. `node` is there if `before` is not.
    void replace(const StoredItem& before, const std::shared_ptr<Stored>& after, Node node) noexcept {
        const MutexLock lock{mutex_};
        if (before) node = latest_.extract(before->position);
        if (!after) return;
        after->position = ++last_;
        node.key() = last_;
        node.mapped() = after;
        latest_.insert(latest_.end(), std::move(node));
    }

    Position last() const {
        const MutexLock lock{mutex_};
        return last_;
    }
    Found list(Position after, std::size_t limit) const {
        Found found{limit};
        const MutexLock lock{mutex_};
        for (auto at = latest_.upper_bound(after); at != latest_.end() && !found.is_full(); ++at) found.add(at->second);
        return found;
    }

  private:
    mutable Mutex mutex_;
    Position last_ VARVE_GUARDED_BY(mutex_) = 0;
    std::map<Position, StoredItem> latest_ VARVE_GUARDED_BY(mutex_);
};

struct Partition {
    mutable std::shared_mutex mutex;
    std::map<SortKey, StoredItem> items;  // guarded by mutex

    StoredItem find(const SortKey& sort) const {
        const auto found = items.find(sort);
        return found == items.end() ? nullptr : found->second;
    }
};

struct Table {
    explicit Table(TableSchema s) : schema(std::move(s)) {}

    const TableSchema schema;
    ByName<Partition> partitions;
    ChangeOrder order;

    const Partition* find(const std::string& partition) const {
        const auto found = partitions.find(partition);
        return found == partitions.end() ? nullptr : &found->second;
    }
};

const Item* item_of(const StoredItem& stored) {
    return stored ? &stored->record.item : nullptr;
}

std::optional<Item> copy(const StoredItem& stored) {
    return stored ? std::optional{stored->record.item} : std::nullopt;
}

class MemoryStore final : public ItemStore {
  public:
    explicit MemoryStore(const Options& options) : options_(options) {}

    const Options& options() const { return options_; }

    void ensure_table(const TableSchema& schema) override {
        check(schema);
        auto found = tables_.find(schema.name);
        if (found == tables_.end()) {
            found = tables_.emplace(schema.name, std::make_unique<Table>(schema)).first;
        }
        compare(found->second->schema, schema);
    }

    bool has_table(const TableSchema& schema) override {
        check(schema);
        const auto found = tables_.find(schema.name);
        if (found == tables_.end()) return false;
        compare(found->second->schema, schema);
        return true;
    }

    std::vector<std::optional<Item>> read(std::span<const Key> keys) override {
        for (const Key& key : keys) check(table(key.table).schema, key);
        std::vector<std::optional<Item>> items;
        for (const Key& key : keys) {
            StoredItem found;
            if (const Partition* partition = table(key.table).find(key.partition)) {
                const std::shared_lock lock{partition->mutex};
                found = partition->find(key.sort);
            }
            items.push_back(copy(found));
        }
        return items;
    }

    std::vector<WriteAnswer> write(std::span<const Write> writes) override {
        check(writes, Batch::independent);
        for (const Write& one : writes) check(table(one.key.table).schema, one, options_.item_bytes_max);
        std::vector<WriteAnswer> answers(writes.size());
        for (std::size_t i = 0; i < writes.size(); ++i) {
            try {
                answers[i] = write(writes[i]);
            } catch (const std::bad_alloc&) {  // the rest of the batch is not lost for it
                answers[i] = Failure{.kind = ErrorKind::unavailable, .in_doubt = false, .message = "out of memory"};
            }
        }
        return answers;
    }

    AtomicAnswer write_atomically(std::span<const Write> writes) override {
        check(writes, Batch::atomic);
        if (writes.size() > atomic_writes_max) {
            throw InvalidError("an atomic batch of " + std::to_string(writes.size()) + " writes, at most " +
                               std::to_string(atomic_writes_max) + " are allowed");
        }
        for (const Write& one : writes) check(table(one.key.table).schema, one, options_.item_bytes_max);

        std::vector<Partition*> partitions;
        for (const Write& one : writes) partitions.push_back(&table(one.key.table).partitions[one.key.partition]);
        const std::set<Partition*, std::less<>> in_order(partitions.begin(), partitions.end());
        std::vector<std::unique_lock<std::shared_mutex>> locks;
        for (Partition* partition : in_order) locks.emplace_back(partition->mutex);

        RefusedBatch refusal;
        std::vector<StoredItem> before;
        std::vector<std::optional<Item>> after;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            before.push_back(partitions[i]->find(writes[i].key.sort));
            if (!holds(writes[i].condition, item_of(before[i]))) refusal.refused.push_back({i, copy(before[i])});
            after.push_back(apply(writes[i], item_of(before[i])));
        }
        if (!refusal.refused.empty()) return refusal;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (auto failure = beyond_limit(writes[i].key, after[i])) return *std::move(failure);
        }
        std::vector<Prepared> all;
        all.reserve(writes.size());
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (std::holds_alternative<Check>(writes[i].action)) continue;
            all.push_back(
                prepare(table(writes[i].key.table), *partitions[i], writes[i].key, before[i], std::move(after[i])));
        }
        for (Prepared& one : all) commit(std::move(one));
        return Applied{};
    }

    Page query(const Query& query) override {
        const Table& source = table(query.table);
        check(source.schema, query);
        SortKey first = query.first;
        SortKey last = query.last;
        if (query.next) (query.descending ? last : first) = sort_of_query_token(source.schema, *query.next);

        Found found{query.limit};
        bool more = false;
        if (const Partition* partition = source.find(query.partition)) {
            const std::shared_lock lock{partition->mutex};
            const auto& items = partition->items;
            const auto no_key = [](const SortKey& sort) { return std::holds_alternative<std::monostate>(sort); };
            const bool after_first = query.next && !query.descending;
            const bool before_last = query.next && query.descending;
            auto from = no_key(first) ? items.begin()
                        : after_first ? items.upper_bound(first)
                                      : items.lower_bound(first);
            auto to = no_key(last) ? items.end() : before_last ? items.lower_bound(last) : items.upper_bound(last);
            if (!no_key(first) && !no_key(last) && last < first) to = from;
            while (from != to && !found.is_full()) found.add(query.descending ? (--to)->second : (from++)->second);
            more = from != to;
        }
        Page page = found.page();
        if (more) page.next = query_token(page.records.back().key.sort);
        return page;
    }

    Page scan(const Scan& scan) override {
        const Table& source = table(scan.table);
        check(source.schema, scan);

        Found found{scan.limit};
        auto at = source.partitions.begin();
        std::optional<Key> last;
        if (scan.next) {
            last = key_of_scan_token(source.schema, *scan.next);
            at = source.partitions.find(last->partition);
            if (at == source.partitions.end()) {
                throw InvalidError("the continuation `next` names a partition that table '" + scan.table +
                                   "' never had: " + last->partition);
            }
        }
        for (; at != source.partitions.end() && !found.is_full(); ++at) {
            const auto& [name, partition] = *at;
            if (std::hash<std::string>{}(name) % scan.segments != scan.segment) continue;
            const std::shared_lock lock{partition.mutex};
            const bool begun = last && name == last->partition;
            auto item = begun ? partition.items.upper_bound(last->sort) : partition.items.begin();
            for (; item != partition.items.end() && !found.is_full(); ++item) found.add(item->second);
        }
        Page page = found.page();
        if (found.is_full()) page.next = scan_token(page.records.back().key);
        return page;
    }

    Capabilities capabilities() const override {
        return {
            .item_bytes_max = options_.item_bytes_max, .atomic_writes_max = atomic_writes_max, .ordered_changes = true};
    }

    std::vector<Change> changes(const std::string& name, Position after, std::size_t limit) override {
        const Found found = table(name).order.list(after, limit);
        std::vector<Change> changes;
        for (const StoredItem& stored : found.items()) {
            changes.push_back({stored->position, stored->record});
        }
        return changes;
    }

    Position last_change(const std::string& name) override { return table(name).order.last(); }

  private:
    static constexpr std::size_t atomic_writes_max = 1000;

    static void compare(const TableSchema& existing, const TableSchema& schema) {
        if (existing == schema) return;
        throw ConfigError("table '" + schema.name + "' exists as " + to_string(existing) + " and was asked for as " +
                          to_string(schema));
    }

    Table& table(const std::string& name) const {
        const auto found = tables_.find(name);
        if (found == tables_.end()) throw InvalidError("no table '" + name + "'; call ensure_table first");
        return *found->second;
    }

    /// An update can grow an item beyond the limit although it is within by itself.
    std::optional<Failure> beyond_limit(const Key& key, const std::optional<Item>& item) const {
        if (!item || bytes(key, *item) <= options_.item_bytes_max) return std::nullopt;
        return Failure{.kind = ErrorKind::invalid,
                       .in_doubt = false,
                       .message = too_large(key, bytes(key, *item), options_.item_bytes_max)};
    }

    WriteAnswer write(const Write& one) {
        Table& target = table(one.key.table);
        Partition& partition = target.partitions[one.key.partition];
        const std::lock_guard lock{partition.mutex};
        const StoredItem current = partition.find(one.key.sort);
        if (!holds(one.condition, item_of(current))) return Refused{copy(current)};
        std::optional<Item> after = apply(one, item_of(current));
        if (auto failure = beyond_limit(one.key, after)) return *std::move(failure);
        commit(prepare(target, partition, one.key, current, std::move(after)));
        return Applied{};
    }

    /// All the memory that a change takes, so that what has begun is done: a change cannot run out of it half way.
    struct Prepared {
        Table& table;
        Partition& partition;
        const SortKey& sort;
        StoredItem before;
        std::shared_ptr<Stored> after;                       // null: erased
        std::map<SortKey, StoredItem>::node_type item = {};  // the next two unless there was an item before
        ChangeOrder::Node order = {};
    };
    static Prepared prepare(Table& table, Partition& partition, const Key& key, StoredItem before,
                            std::optional<Item> after) {
        Prepared prepared{
            .table = table, .partition = partition, .sort = key.sort, .before = std::move(before), .after = nullptr};
        if (!after) return prepared;
        const std::size_t size = bytes(key, *after);
        prepared.after =
            std::make_shared<Stored>(Stored{.record = {.key = key, .item = *std::move(after)}, .bytes = size});
        if (prepared.before) return prepared;
        std::map<SortKey, StoredItem> items{{key.sort, prepared.after}};
        std::map<Position, StoredItem> order{{0, prepared.after}};
        prepared.item = items.extract(items.begin());
        prepared.order = order.extract(order.begin());
        return prepared;
    }

    /// The caller holds the partition's lock. The change is numbered before anybody can see it in its place.
    static void commit(Prepared change) noexcept {
        auto& items = change.partition.items;
        change.table.order.replace(change.before, change.after, std::move(change.order));
        if (!change.after) {
            items.erase(change.sort);
        } else if (change.before) {
            items.find(change.sort)->second = std::move(change.after);
        } else {
            items.insert(std::move(change.item));
        }
    }

    const Options options_;
    ByName<std::unique_ptr<Table>> tables_;
};

}  // namespace

std::shared_ptr<ItemStore> open(std::string_view name, const Options& options) {
    if (name.empty()) return std::make_shared<MemoryStore>(options);

    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<MemoryStore>, std::less<>> named;  // guarded by mutex
    const std::lock_guard lock{mutex};
    std::erase_if(named, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = named.find(name); found != named.end()) {
        if (auto store = found->second.lock()) {
            if (store->options().item_bytes_max != options.item_bytes_max) {
                throw ConfigError("the store memory:" + std::string{name} + " is already open with item_bytes_max=" +
                                  std::to_string(store->options().item_bytes_max));
            }
            return store;
        }
    }
    auto store = std::make_shared<MemoryStore>(options);
    named.insert_or_assign(std::string{name}, store);
    return store;
}

}  // namespace varve::memory
