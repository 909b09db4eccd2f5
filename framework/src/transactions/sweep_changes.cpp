#include "transactions/sweep_changes.h"

#include "transactions/system_table.h"

#include <algorithm>
#include <set>

namespace varve::transactions {

Sweeper::Changes::Changes(Coordinator& coordinator, std::vector<std::string> tables)
    : coordinator_(coordinator), settler_(coordinator), tombstones_(coordinator) {
    for (std::string& name : tables) tables_.push_back({.name = std::move(name)});
    std::vector<store::Key> keys;
    for (const Table& table : tables_) {
        keys.push_back(checkpoint_key("sweeper", table.name));
        keys.push_back(checkpoint_key("collector", table.name));
    }
    const std::vector<std::optional<store::Item>> items = coordinator_.store().read(keys);
    const auto position = [&](std::size_t i) -> store::Position {
        const std::int64_t* saved = items[i] ? store::integer(*items[i], "position") : nullptr;
        return saved ? static_cast<store::Position>(*saved) : 0;
    };
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        tables_[i].seen = tables_[i].saved_seen = position(2 * i);
        tables_[i].collected = tables_[i].saved_collected = position(2 * i + 1);
    }
}

std::size_t Sweeper::Changes::sweep() {
    is_through_ = false;
    bool through = true;
    std::size_t left = 0;
    for (Table& table : tables_) {
        through = read_changes(table) && through;
        settle_due(table);
        if (table.name != events_table().name) collect_tombstones(table);
        const store::Position settled = table.unsettled.empty() ? table.seen : table.unsettled.front().position - 1;
        save(checkpoint_key("sweeper", table.name), settled, table.saved_seen);
        const store::Position collected =
            table.overdated.empty() ? table.collected : std::min(table.collected, table.overdated.front().position - 1);
        save(checkpoint_key("collector", table.name), collected, table.saved_collected);
        left += table.unsettled.size();
    }
    is_through_ = through;
    return left;
}

bool Sweeper::Changes::read_changes(Table& table) {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    for (int page = 0; page < pages_per_sweep_max && table.unsettled.size() < unsettled_max; ++page) {
        std::vector<store::Change> changes = coordinator_.store().changes(table.name, table.seen, page_size);
        for (store::Change& change : changes) {
            table.seen = change.position;
            const std::optional<Duration> after = settler_.look_after(change.record);
            if (!after) continue;
            const std::size_t size = store::bytes(change.record.key, change.record.item);
            table.unsettled.push_back({change.position, std::move(change.record.key), size, now + *after});
        }
        if (changes.empty()) return true;
    }
    return false;
}

void Sweeper::Changes::settle_due(Table& table) {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    std::map<store::Key, std::size_t> keys;
    for (const Met& met : table.unsettled) {
        if (met.due <= now) keys[met.key] = met.bytes;
    }
    const std::set<store::Key> settled = settler_.settle(keys);
    std::erase_if(table.unsettled, [&](const Met& met) { return met.due <= now && settled.contains(met.key); });
}

void Sweeper::Changes::collect_tombstones(Table& table) {
    collect_overdated(table);
    for (;;) {
        const std::vector<store::Change> changes = coordinator_.store().changes(table.name, table.collected, page_size);
        std::vector<store::Write> removals;
        store::Position collected = table.collected;
        for (const store::Change& change : changes) {
            if (const std::optional<Image> image = tombstones_.read(change.record)) {
                if (tombstones_.is_over(*image)) {
                    removals.push_back(remove_tombstone(change.record.key, *image));
                } else if (!put_aside(table, change, *image)) {
                    break;
                }
            }
            collected = change.position;
        }
        if (!tombstones_.remove(removals)) return;
        table.collected = collected;
        if (changes.empty() || collected < changes.back().position) return;
    }
}

bool Sweeper::Changes::put_aside(Table& table, const store::Change& change, const Image& tombstone) {
    if (*tombstone.expires <= coordinator_.resolver().tombstone_expiry()) return false;
    if (!table.overdated.empty() && change.position <= table.overdated.back().position) return true;
    if (table.overdated.size() >= unsettled_max) return false;
    table.overdated.push_back({change.position, change.record.key, tombstone,
                               coordinator_.runtime().clock.get().steady_now() + coordinator_.options().retention});
    return true;
}

void Sweeper::Changes::collect_overdated(Table& table) {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    std::vector<store::Write> removals;
    std::set<store::Key> keys;  // one that was filled and emptied again is here twice
    for (const Overdated& one : table.overdated) {
        if (one.due > now || removals.size() == page_size || !keys.insert(one.key).second) break;
        removals.push_back(remove_tombstone(one.key, one.tombstone));
    }
    if (tombstones_.remove(removals)) {
        table.overdated.erase(table.overdated.begin(),
                              table.overdated.begin() + static_cast<std::ptrdiff_t>(removals.size()));
    }
}

void Sweeper::Changes::save(const store::Key& key, store::Position reached, store::Position& saved) {
    if (reached < saved + page_size) return;
    const auto position = static_cast<std::int64_t>(reached);
    const store::Write one{key, store::Put{{{"position", position}}},
                           !store::item_exists() || store::less("position", position)};
    const std::vector<store::WriteAnswer> answers = coordinator_.store().write({&one, 1});
    if (!std::holds_alternative<Failure>(answers.front())) saved = reached;
}

}  // namespace varve::transactions
