#include "operations/source.h"

#include "commands/checkpoint.h"
#include "commands/command_id.h"
#include "commands/parked_row.h"
#include "events/snapshot.h"
#include "feed/feed.h"
#include "locks/stored_lock.h"
#include "rows/stored_rows.h"
#include "transactions/attributes.h"
#include "transactions/bell.h"
#include "transactions/in_turn.h"
#include "transactions/row.h"
#include "transactions/system_table.h"

#include <varve/core/fnv1a.h>
#include <varve/core/json.h>
#include <varve/store/item_text.h>

#include <algorithm>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr std::size_t slots_at_once = 1000;

[[noreturn]] void throw_moved(const std::string& table) {
    throw ConflictError("the table '" + table +
                        "' has changed meanwhile: somebody writes to this store. End all applications on it and begin "
                        "again, or move the events only");
}

bool is_receipt(const store::Key& slot) {
    return slot.partition.starts_with(detail::id_prefix);
}

/// In whatever order they are added.
std::uint64_t part_of_sum(const store::Record& record) {
    return fnv1a(store::to_string(record.key) + store::item_text(record.item));
}

template <class Row>
Row decoded(const store::Key& key, const std::string& data) {
    auto row = json::decode<Row>(data);
    if (!row) throw_damaged(key, "cannot be read (" + row.error().message + ")");
    return *std::move(row);
}

/// nullptr: that row tells none.
template <class Take>
void with_position(const store::Key& key, const std::string& data, const Take& take) {
    if (key.table == detail::Checkpoint::table) take(decoded<detail::Checkpoint>(key, data));
    if (key.table == detail::ParkedRow::table) take(decoded<detail::ParkedRow>(key, data));
}

}  // namespace

void throw_unsettled(const store::Key& key) {
    throw ConflictError("a transaction has left " + store::to_string(key) +
                        " unfinished; let an application run on this store until its sweeper has finished it, end it, "
                        "and begin again");
}

store::Item item_of(const Committed& slot) {
    store::Item item = slot.payload;
    item.insert_or_assign("state", std::string{"committed"});
    item.insert_or_assign("write_id", slot.write_id);
    return item;
}

SlotReader::SlotReader(store::ItemStore& store, Runtime runtime, store::Position after)
    : store_(store), runtime_(runtime), logged_(!store.capabilities().ordered_changes), at_(after), log_at_(after) {}

bool SlotReader::read(store::Position end, std::vector<Found>& found) {
    return logged_ ? read_log(end, found) : read_changes(end, found);
}

bool SlotReader::read_changes(store::Position end, std::vector<Found>& found) {
    if (at_ >= end) return false;
    std::vector<store::Change> changes =
        patiently(runtime_, [&] { return store_.changes(events_table().name, at_, slots_at_once); });
    if (changes.empty()) at_ = end;
    for (store::Change& change : changes) {
        if (change.position > end) {
            at_ = end;
            break;
        }
        at_ = change.position;
        store::Key& key = change.record.key;
        const Slot slot = decode_slot(key, std::move(change.record.item));
        if (std::holds_alternative<Pending>(slot) && !unsettled_) unsettled_ = key;
        const auto* const committed = std::get_if<Committed>(&slot);
        if (committed == nullptr) continue;
        if (is_followed(key, committed->payload)) {
            found.push_back({change.position, {std::move(key), item_of(*committed)}});
        } else if (receipt && is_receipt(key)) {
            receipt({change.position, {std::move(key), item_of(*committed)}});
        }
    }
    return true;
}

bool SlotReader::read_log(store::Position end, std::vector<Found>& found) {
    if (at_ >= end) return false;
    if (named_.empty()) {
        for (const feed::LogItem& item :
             patiently(runtime_, [&] { return feed::items_from(store_, log_at_ + 1, false); })) {
            store::Position position = item.first;
            for (const feed::Run& run : item.runs) {
                for (Version version = run.first; version <= run.last; ++version, ++position) {
                    if (position > log_at_) named_.emplace_back(position, slot_key(run.stream, version));
                }
            }
            log_at_ = item.last();
            if (named_.size() >= slots_at_once) break;
        }
        if (named_.empty()) throw CorruptionError("the log of this store's events ends before it did; put it back");
    }
    std::vector<store::Key> keys;
    for (std::size_t i = 0; i < named_.size() && i < slots_at_once && named_[i].first <= end; ++i)
        keys.push_back(named_[i].second);
    std::vector<std::optional<store::Item>> items(keys.size());
    patiently(runtime_, [&] {
        read_in_turn(store_, keys, [&](std::size_t i, std::optional<store::Item> item) { items[i] = std::move(item); });
    });
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const Slot slot = decode_slot(keys[i], std::move(items[i]));
        const auto* const committed = std::get_if<Committed>(&slot);
        if (committed == nullptr) throw_damaged(keys[i], "is in the log of events, and nothing is committed there");
        at_ = named_.front().first;
        found.push_back({at_, {std::move(keys[i]), item_of(*committed)}});
        named_.pop_front();
    }
    return true;
}

Source::Source(store::ItemStore& store, Runtime runtime)
    : store_(store), runtime_(runtime), logged_(!store.capabilities().ordered_changes) {
    store_.ensure_table(system_table());
    const store::Key format{system_table().name, "format"};
    if (!patiently(runtime_, [&] { return store_.read({&format, 1}); }).front())
        throw ConfigError("there is nothing of varve's in this store; name the one that applications have written to");
    check_format(store_);
    store_.ensure_table(events_table());
    if (!logged_) return;
    feed::ensure_log_tables(store_);
    if (patiently(runtime_, [&] { return read_bell_shards(store_); }) > 0) return;
    throw ConfigError(
        "the events of this store have no order: it keeps no order of changes, and commits are not announced in it. "
        "Let an application with ApplicationOptions::feed run until its sweeper has read it all, and begin again");
}

store::Position Source::end() const {
    return patiently(runtime_, [&]() -> store::Position {
        if (!logged_) return store_.last_change(events_table().name);
        const std::optional<feed::LogItem> last = feed::last_item(store_);
        return last ? last->last() : 0;
    });
}

void Source::begin_quiet() {
    sums_.clear();
    if (logged_) {
        check_bells();
    } else {
        last_changes_ = last_changes();
    }
    end_ = end();
    receipts_.reset();
    collect_places();
}

void Source::check_quiet() {
    if (!logged_) {
        const auto now = last_changes();
        for (const auto& [table, last] : now) {
            const auto before = last_changes_.find(table);
            if (before == last_changes_.end() || before->second != last) throw_moved(table);
        }
    } else {
        check_bells();
        if (end() != end_) throw_moved(events_table().name);
    }
    std::map<std::string, std::uint64_t> before = std::move(sums_);
    sums_.clear();
    const auto pass = [](const store::Record&) { return true; };
    locks([](const Entry&) { return true; });
    if (logged_) {
        scan(events_table().name, pass);
        scan(events::snapshots_table().name, pass);
        for (const TableEntry& table : tables_of_rows()) scan(table.name, pass);
    }
    for (const auto& [table, sum] : sums_) {
        if (const auto was = before.find(table); was == before.end() || was->second != sum) throw_moved(table);
    }
}

std::map<std::string, store::Position> Source::last_changes() {
    std::vector<std::string> names{events_table().name, events::snapshots_table().name};
    store_.ensure_table(events::snapshots_table());
    for (const TableEntry& table : tables_of_rows()) names.push_back(table.name);
    std::map<std::string, store::Position> last;
    for (const std::string& name : names)
        last.emplace(name, patiently(runtime_, [&] { return store_.last_change(name); }));
    return last;
}

void Source::check_bells() {
    const unsigned shards = patiently(runtime_, [&] { return read_bell_shards(store_); });
    for (unsigned shard = 0; shard < shards; ++shard) {
        store::Query bells = bells_in(shard);
        bells.limit = 1;
        do {
            store::Page page = patiently(runtime_, [&] { return store_.query(bells); });
            if (!page.records.empty()) {
                throw ConflictError(
                    "a commit is announced by " + store::to_string(page.records.front().key) +
                    " and is not in the order of events yet; let an application run on this store until "
                    "it is, end it, and begin again");
            }
            bells.next = std::move(page.next);
        } while (bells.next);
    }
}

bool Source::scan(const std::string& table, const std::function<bool(store::Record)>& take) {
    std::uint64_t* const sum = logged_ && table != locks::locks_table().name ? &sums_[table] : nullptr;
    store::Scan scan{.table = table};
    do {
        store::Page page = patiently(runtime_, [&] { return store_.scan(scan); });
        for (store::Record& record : page.records) {
            // Tombstones go by themselves, when the store likes.
            if (sum != nullptr && !is_tombstone(record.item)) *sum += part_of_sum(record);
            if (!take(std::move(record))) return false;
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    return true;
}

std::vector<TableEntry> Source::tables_of_rows() {
    std::vector<TableEntry> tables;
    store::Scan scan{.table = system_table().name};
    do {
        store::Page page = patiently(runtime_, [&] { return store_.scan(scan); });
        for (const store::Record& record : page.records) {
            const std::string& name = record.key.partition;
            if (!name.starts_with(rows_prefix)) continue;
            const std::int64_t* const sorted = integer_of(record.key, record.item, "sorted", {0, 1});
            const std::string* const indexes = text_of(record.key, record.item, "indexes");
            if (sorted == nullptr || indexes == nullptr) throw_damaged(record.key, "does not say what its rows are");
            tables.push_back({name.substr(rows_prefix.size()), *sorted == 1, *indexes});
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    std::ranges::sort(tables, {}, &TableEntry::name);
    for (const TableEntry& table : tables) store_.ensure_table(detail::schema_of_rows(table.name, table.sorted));
    return tables;
}

void Source::collect_places() {
    places_.clear();
    for (const TableEntry& table : tables_of_rows()) {
        if (table.name != detail::Checkpoint::table && table.name != detail::ParkedRow::table) continue;
        store::Scan scan{.table = table.name};
        do {
            store::Page page = patiently(runtime_, [&] { return store_.scan(scan); });
            for (const store::Record& record : page.records) {
                const std::string* const data = store::text(record.item, "data");
                if (data == nullptr) continue;
                with_position(record.key, *data, [&](const auto& row) {
                    if (row.position < 0 || static_cast<store::Position>(row.position) > end_)
                        throw_damaged(record.key, "tells a position behind the end of all events");
                    // What a log has are slots that followers see, and nothing else.
                    const auto place = static_cast<store::Position>(row.position);
                    places_.emplace(place, logged_ ? place : 0);
                });
            }
            scan.next = std::move(page.next);
        } while (scan.next);
    }
}

bool Source::rest(const Sink& sink) {
    return (logged_ ? receipts_of_scan(sink) : receipts_of_changes(sink)) && tables(sink);
}

bool Source::tables(const Sink& sink) {
    for (const TableEntry& table : tables_of_rows()) {
        if (!sink(table) || !rows(table, sink)) return false;
    }
    return snapshots(sink) && locks(sink) && setting(sink);
}

bool Source::slots(const Sink& sink) {
    return read(0, end_, sink, {});
}

bool Source::read(store::Position after, store::Position end, const Sink& slot, const Sink& receipt) {
    SlotReader reader{store_, runtime_, after};
    bool goes_on = true;
    Receipts met;
    reader.receipt = [&](SlotReader::Found found) {
        if (met.first == 0) met.first = found.position;
        met.last = found.position;
        if (receipt) goes_on = goes_on && receipt(ReceiptEntry{std::move(found.slot)});
    };
    std::uint64_t slots = 0;
    auto place = receipts_ || logged_ ? places_.end() : places_.begin();
    for (std::vector<SlotReader::Found> found; goes_on && reader.read(end, found); found.clear()) {
        if (reader.unsettled()) throw_unsettled(*reader.unsettled());
        for (SlotReader::Found& one : found) {
            for (; place != places_.end() && place->first < one.position; ++place) place->second = slots;
            ++slots;
            if (slot) goes_on = goes_on && slot(SlotEntry{std::move(one.slot)});
        }
    }
    for (; place != places_.end(); ++place) place->second = slots;
    if (goes_on && !receipts_) receipts_ = met;
    return goes_on;
}

bool Source::receipts_of_changes(const Sink& sink) {
    if (!receipts_) return read(0, end_, {}, sink);
    return receipts_->first == 0 || read(receipts_->first - 1, receipts_->last, {}, sink);
}

bool Source::receipts_of_scan(const Sink& sink) {
    store::Position slots = 0;
    const bool goes_on = scan(events_table().name, [&](store::Record record) {
        const Slot slot = decode_slot(record.key, std::move(record.item));
        if (std::holds_alternative<Pending>(slot)) throw_unsettled(record.key);
        const auto* const committed = std::get_if<Committed>(&slot);
        if (committed == nullptr) return true;
        if (is_followed(record.key, committed->payload)) ++slots;
        if (!is_receipt(record.key) || is_followed(record.key, committed->payload)) return true;
        return sink(ReceiptEntry{{std::move(record.key), item_of(*committed)}});
    });
    if (goes_on && slots != end_) {
        throw ConflictError(
            std::to_string(slots) + " slots are committed in this store, and " + std::to_string(end_) +
            " are in the order of events; let an application run on it until its sweeper has read it all, "
            "end it, and begin again");
    }
    return goes_on;
}

std::string Source::translated(const store::Key& row, const std::string& data) const {
    std::string text = data;
    with_position(row, data, [&](auto decoded) {
        const auto place = places_.find(static_cast<store::Position>(decoded.position));
        if (place == places_.end()) throw_moved(row.table);
        decoded.position = static_cast<std::int64_t>(place->second);
        text = json::encode(decoded);
    });
    return text;
}

bool Source::rows(const TableEntry& table, const Sink& sink) {
    return scan(table.name, [&](store::Record record) {
        Row row = decode_row(record.key, std::move(record.item));
        if (row.intent) throw_unsettled(record.key);
        if (!row.image.data) return true;
        std::string data = translated(record.key, *row.image.data);
        return sink(RowEntry{std::move(record.key), row.image.rev.value_or(""), std::move(data)});
    });
}

bool Source::snapshots(const Sink& sink) {
    store_.ensure_table(events::snapshots_table());
    return scan(events::snapshots_table().name,
                [&](store::Record record) { return sink(SnapshotEntry{std::move(record)}); });
}

bool Source::locks(const Sink& sink) {
    store_.ensure_table(locks::locks_table());
    std::uint64_t& sum = sums_[locks::locks_table().name];
    return scan(locks::locks_table().name, [&](const store::Record& record) {
        const store::Key& key = record.key;
        std::optional<Entry> entry;
        if (key == locks::counter_key(key.partition)) {
            entry = CounterEntry{key.partition, locks::decode_counter(key, record.item)};
        } else if (key == locks::holder_key(key.partition)) {
            entry = FenceEntry{key.partition, locks::decode_holder(key, record.item).fence};
        } else {
            static_cast<void>(locks::ticket_of(key));  // who waits there is not in the new store
            return true;
        }
        const auto* const counter = std::get_if<CounterEntry>(&*entry);
        sum += fnv1a(store::to_string(key) +
                     std::to_string(counter ? counter->drawn : std::get<FenceEntry>(*entry).fence));
        return sink(*std::move(entry));
    });
}

bool Source::setting(const Sink& sink) {
    const store::Key key = feed_setting_key();
    const std::optional<unsigned> shards = decode_bell_shards(patiently(runtime_, [&] {
                                                                  return store_.read({&key, 1});
                                                              }).front());
    return !shards || *shards == 0 || sink(FeedEntry{*shards});
}

}  // namespace varve::operations
