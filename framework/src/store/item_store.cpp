#include <varve/store/item_store.h>

#include <algorithm>
#include <set>

namespace varve::store {

std::vector<Change> ItemStore::changes(const std::string& table, Position, std::size_t) {
    throw InvalidError("this store keeps no order of changes (asked for table '" + table +
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

}  // namespace varve::store
