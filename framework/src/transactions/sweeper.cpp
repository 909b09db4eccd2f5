#include <varve/core/error.h>
#include <varve/transactions/sweeper.h>
#include <varve/transactions/system_table.h>

#include <algorithm>

namespace varve::transactions {
namespace {

constexpr std::size_t page_size = 500;
constexpr std::size_t unsettled_max = 10'000;
constexpr int pages_per_sweep_max = 20;  // so that a long history does not keep a sweep from ending

store::Key checkpoint_key(const char* of, const std::string& table) {
    return {system_table().name, of + ("/" + table)};
}

bool failed(const store::WriteAnswer& answer) {
    return std::holds_alternative<Failure>(answer);
}

/// Whether a record needs a second look one lease later. What cannot be read does: it must not be passed by.
bool needs_a_look(const store::Record& record) try {
    if (claim_on(record.key, record.item)) return true;
    if (record.key.table != events_table().name) return false;
    const Slot slot = decode_slot(record.key, record.item);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && !committed->done &&
           (committed->continued > 0 || std::ranges::any_of(committed->participants, [](const store::Key& key) {
                return key.table != events_table().name;
            }));
} catch (const CorruptionError&) {
    return true;
}

}  // namespace

Sweeper::Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables) : c_(coordinator) {
    if (!c_.store().capabilities().ordered_changes) {
        throw InvalidError("this store keeps no order of changes, which a sweeper follows");
    }
    tables_.push_back({.name = events_table().name});
    for (std::string& name : row_tables) tables_.push_back({.name = std::move(name)});
    std::vector<store::Key> keys;
    for (const Table& table : tables_) {
        keys.push_back(checkpoint_key("sweeper", table.name));
        keys.push_back(checkpoint_key("collector", table.name));
    }
    const std::vector<std::optional<store::Item>> items = c_.store().read(keys);
    const auto position = [&](std::size_t i) -> store::Position {
        const std::int64_t* saved = items[i] ? store::integer(*items[i], "position") : nullptr;
        return saved ? static_cast<store::Position>(*saved) : 0;
    };
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        tables_[i].seen = tables_[i].saved_seen = position(2 * i);
        tables_[i].collected = tables_[i].saved_collected = position(2 * i + 1);
    }
}

std::size_t Sweeper::sweep() {
    std::size_t left = 0;
    for (Table& table : tables_) {
        read_changes(table);
        settle(table);
        if (table.name != events_table().name) collect_tombstones(table);
        const store::Position settled = table.unsettled.empty() ? table.seen : table.unsettled.front().position - 1;
        save(checkpoint_key("sweeper", table.name), settled, table.saved_seen);
        save(checkpoint_key("collector", table.name), table.collected, table.saved_collected);
        left += table.unsettled.size();
    }
    return left;
}

void Sweeper::read_changes(Table& table) {
    const Time now = c_.runtime().clock.now();
    for (int page = 0; page < pages_per_sweep_max && table.unsettled.size() < unsettled_max; ++page) {
        std::vector<store::Change> changes = c_.store().changes(table.name, table.seen, page_size);
        for (store::Change& change : changes) {
            table.seen = change.position;
            if (needs_a_look(change.record))
                table.unsettled.push_back({change.position, std::move(change.record.key), now});
        }
        if (changes.size() < page_size) return;
    }
}

void Sweeper::settle(Table& table) {
    const Time due = c_.runtime().clock.now() - c_.options().lease;
    std::vector<store::Key> keys;
    for (const Met& met : table.unsettled) {
        if (met.at <= due && std::ranges::find(keys, met.key) == keys.end()) keys.push_back(met.key);
        if (keys.size() == page_size) break;
    }
    if (keys.empty()) return;
    std::vector<std::optional<store::Item>> items = c_.store().read(keys);
    std::vector<store::Key> settled;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
            if (is_settled(keys[i], items[i])) settled.push_back(keys[i]);
        } catch (const CorruptionError& error) {  // it stays, the others go on
            c_.runtime().log.write(LogLevel::error, std::string{"the sweeper cannot settle an item: "} + error.what());
        }
    }
    std::erase_if(table.unsettled, [&](const Met& met) {
        return met.at <= due && std::ranges::find(settled, met.key) != settled.end();
    });
}

bool Sweeper::is_settled(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return true;
    if (claim_on(key, *item)) {
        if (c_.resolver().settle(key, *item, nullptr) != Verdict::undecided) ++c_.metrics().swept;
        return false;  // until the next pass has seen it without a claim
    }
    if (key.table != events_table().name) return true;
    const Slot slot = decode_slot(key, *item);
    const auto* committed = std::get_if<Committed>(&slot);
    if (committed == nullptr || committed->done) return true;
    if (committed->participants.empty() && committed->continued == 0) return true;

    ++c_.metrics().swept;
    return finish_participants(key, *committed);
}

bool Sweeper::finish_participants(const store::Key& primary, const Committed& commit) {
    const std::vector<store::Key> participants = c_.resolver().participants(commit);
    const std::vector<std::optional<store::Item>> items = c_.store().read(participants);
    std::vector<store::Write> writes;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const std::optional<Claim> claim = items[i] ? claim_on(participants[i], *items[i]) : std::nullopt;
        if (claim && claim->tx == commit.write_id) {
            writes.push_back(c_.resolver().finalise(participants[i], *items[i], commit));
        }
    }
    if (!writes.empty() && std::ranges::any_of(c_.store().write(writes), failed)) return false;
    c_.metrics().finalised_for_others += writes.size();
    const store::Write done = mark_done(primary, commit.write_id);
    return !failed(c_.store().write({&done, 1}).front());
}

void Sweeper::collect_tombstones(Table& table) {
    const std::int64_t now =
        std::chrono::floor<std::chrono::seconds>(c_.runtime().clock.now()).time_since_epoch().count();
    for (;;) {
        const std::vector<store::Change> changes = c_.store().changes(table.name, table.collected, page_size);
        std::vector<store::Write> removals;
        store::Position collected = table.collected;
        for (const store::Change& change : changes) {
            const Row row = decode_row(change.record.key, change.record.item);
            if (row.image.expires) {
                if (*row.image.expires > now) break;
                removals.push_back(remove_tombstone(change.record.key, row.image));
            }
            collected = change.position;
        }
        if (!removals.empty() && std::ranges::any_of(c_.store().write(removals), failed)) return;
        table.collected = collected;
        if (changes.empty() || collected < changes.back().position) return;
    }
}

void Sweeper::save(const store::Key& key, store::Position reached, store::Position& saved) {
    if (reached < saved + page_size) return;
    const auto position = static_cast<std::int64_t>(reached);
    const store::Write write{key, store::Put{{{"position", position}}},
                             !store::item_exists() || store::less("position", position)};
    if (!failed(c_.store().write({&write, 1}).front())) saved = reached;
}

}  // namespace varve::transactions
