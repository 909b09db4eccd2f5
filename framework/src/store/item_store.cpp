#include <varve/store/adapter.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <set>

namespace varve::store {

FoundTogether ItemStore::read_together(std::span<const Key> keys, std::span<const Query> queries) {
    FoundTogether found;
    if (!keys.empty()) found.items = read(keys);
    for (const Query& one : queries) found.pages.push_back(query(one));
    return found;
}

std::vector<Change> ItemStore::changes(const std::string& table, Position, std::size_t) {
    throw InvalidError("this store keeps no order of changes (asked for table '" + table +
                       "'); see Capabilities::ordered_changes");
}

Position ItemStore::last_change(const std::string& table) {
    throw InvalidError("this store keeps no order of changes (asked for the last one in table '" + table +
                       "'); see Capabilities::ordered_changes");
}

AtomicAnswer ItemStore::write_atomically(std::span<const Write> writes) {
    throw InvalidError("this store cannot write " + std::to_string(writes.size()) +
                       " items atomically; see Capabilities::atomic_writes_max");
}

void check(std::span<const Write> writes, Batch kind) {
    std::set<const Key*, decltype([](const Key* a, const Key* b) { return *a < *b; })> keys;
    for (const Write& write : writes) {
        if (writes.size() > 1 && !keys.insert(&write.key).second) {
            throw InvalidError("a batch of writes names " + to_string(write.key) + " twice");
        }
        if (kind == Batch::independent && std::holds_alternative<Check>(write.action)) {
            throw InvalidError("a Check of " + to_string(write.key) + " has no meaning outside an atomic batch");
        }
        if (const auto* update = std::get_if<Update>(&write.action)) {
            for (const std::string& name : update->remove) {
                if (update->set.contains(name)) {
                    throw InvalidError("an update of " + to_string(write.key) + " both sets and removes '" + name +
                                       "'");
                }
            }
        }
    }
}

void check(const TableSchema& schema, const Write& write, std::size_t item_bytes_max) {
    check(schema, write.key);
    const Item* brought = nullptr;
    if (const auto* put = std::get_if<Put>(&write.action)) brought = &put->item;
    if (const auto* update = std::get_if<Update>(&write.action)) {
        brought = &update->set;
        for (const std::string& name : update->remove) check(schema, Item{{name, std::int64_t{0}}});
    }
    if (brought == nullptr) return;
    check(schema, *brought);
    const std::size_t item_bytes = bytes(write.key, *brought);
    if (item_bytes > item_bytes_max)
        throw InvalidError(too_large(write.key, item_bytes, item_bytes_max) + "; keep less in one item");
}

void check(const TableSchema& schema, const Query& query) {
    if (schema.sort == SortType::none) {
        throw InvalidError("table '" + schema.name + "' has no sort key to query by; read its items by key");
    }
    if (query.limit == 0) throw InvalidError("a query of table '" + schema.name + "' with limit 0");
    const SortKey any = schema.sort == SortType::integer ? SortKey{std::int64_t{0}} : SortKey{"any"};
    for (const SortKey* const bound : {&query.first, &query.last}) {
        const bool open = std::holds_alternative<std::monostate>(*bound);
        check(schema, Key{.table = schema.name, .partition = query.partition, .sort = open ? any : *bound});
    }
}

void check(const TableSchema& schema, const Scan& scan) {
    if (scan.segment >= scan.segments) {
        throw InvalidError("a scan of table '" + schema.name + "' asks for segment " + std::to_string(scan.segment) +
                           " of " + std::to_string(scan.segments) + "; they are counted from 0");
    }
    if (scan.limit == 0) throw InvalidError("a scan of table '" + schema.name + "' with limit 0");
}

std::string too_large(const Key& key, std::size_t item_bytes, std::size_t item_bytes_max) {
    return "the item " + to_string(key) + " has " + std::to_string(item_bytes) + " bytes, at most " +
           std::to_string(item_bytes_max) + " are allowed";
}

std::optional<Item> apply(const Write& write, const Item* current) {
    if (const auto* put = std::get_if<Put>(&write.action)) return put->item;
    if (std::holds_alternative<Erase>(write.action)) return std::nullopt;
    std::optional<Item> result;
    if (current != nullptr) result = *current;
    if (const auto* update = std::get_if<Update>(&write.action)) {
        if (!result) result.emplace();
        for (const std::string& name : update->remove) result->erase(name);
        for (const auto& [name, value] : update->set) result->insert_or_assign(name, value);
    }
    return result;
}

std::shared_ptr<void> ItemStore::watch(const std::string&, std::function<void()>) {
    return nullptr;
}

std::vector<std::string> ItemStore::concerns() {
    return {};
}

}  // namespace varve::store
