#include "operations/target.h"

#include "events/snapshot.h"
#include "locks/stored_lock.h"
#include "operations/source.h"
#include "rows/stored_rows.h"
#include "transactions/attributes.h"
#include "transactions/bell.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/core/json.h>
#include <varve/core/retry.h>

#include <algorithm>
#include <map>
#include <optional>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr std::size_t writes_at_once = 1000;
/// Of an atomic one: a store that flushes a file for each does so less often.
constexpr std::size_t atomic_writes_at_once = 4000;
constexpr std::size_t bytes_at_once = std::size_t{4} << 20;
constexpr RetryPolicy patience{.delay_max = std::chrono::seconds{1}, .time_max = std::chrono::minutes{1}};

store::Key format_key() {
    return {system_table().name, "format"};
}

store::Key mark_key() {
    return {system_table().name, "import"};
}

store::Item unfinished(const std::string& id) {
    return {{unfinished_attribute, id}};
}

[[noreturn]] void throw_written(const store::Key& key) {
    throw ConflictError("the item " + store::to_string(key) +
                        " is not what was written there: somebody else writes to the store that is being filled. See "
                        "that nobody does, and begin again with an empty one");
}

/// The first item of the table; nullopt: it is empty.
std::optional<store::Key> first_of(store::ItemStore& store, const store::TableSchema& table) {
    store.ensure_table(table);
    store::Scan scan{.table = table.name, .limit = 1};
    do {
        store::Page page = store.scan(scan);
        if (!page.records.empty()) return page.records.front().key;
        scan.next = std::move(page.next);
    } while (scan.next);
    return std::nullopt;
}

std::string store_text(const store::Item& item, const char* name) {
    const std::string* const text = store::text(item, name);
    return text == nullptr ? std::string{} : *text;
}

struct RecordOf {
    using Record = std::optional<store::Record>;

    Record operator()(const SlotEntry& e) const { return e.slot; }
    Record operator()(const ReceiptEntry& e) const { return e.slot; }
    Record operator()(const TableEntry& e) const {
        return store::Record{rows_key(e.name), {{"indexes", e.indexes}, {"sorted", std::int64_t{e.sorted}}}};
    }
    Record operator()(const RowEntry& e) const { return store::Record{e.key, {{"data", e.data}, {"_rev", e.rev}}}; }
    Record operator()(const SnapshotEntry& e) const { return e.snapshot; }
    Record operator()(const CounterEntry& e) const {
        return store::Record{locks::counter_key(e.lock), {{"drawn", e.drawn}}};
    }
    Record operator()(const FenceEntry& e) const { return locks::free_holder(e.lock, e.fence); }
    Record operator()(const FeedEntry&) const { return std::nullopt; }
};

}  // namespace

store::Condition is_exactly(const store::Item& item) {
    store::Condition all = store::item_exists();
    for (const auto& [name, value] : item) all = std::move(all) && store::equals(name, value);
    return all;
}

std::optional<store::Record> record_of(const Entry& entry) {
    return std::visit(RecordOf{}, entry);
}

Target::Target(store::ItemStore& store, Runtime runtime, std::string id, Existing existing)
    : store_(store),
      runtime_(runtime),
      id_(std::move(id)),
      run_(id_ + " " + uuid7(runtime)),
      existing_(existing),
      ordered_(store.capabilities().ordered_changes),
      atomic_max_(ordered_ ? store.capabilities().atomic_writes_max : 0) {
    begin();
    next_ = mark_;
}

Mark decode_mark(const store::Record& record) {
    constexpr Range counted{0, std::numeric_limits<std::int64_t>::max()};
    const std::string* const id = text_of(record.key, record.item, "id");
    const std::int64_t* const at = integer_of(record.key, record.item, "at", counted);
    const std::string* const what = text_of(record.key, record.item, "what");
    const std::int64_t* const slots = integer_of(record.key, record.item, "slots", counted);
    if (id == nullptr || at == nullptr || what == nullptr || slots == nullptr)
        throw_damaged(record.key, "does not say what the store was filled with, and how far");
    return {.at = static_cast<std::uint64_t>(*at),
            .what = *what,
            .slots = static_cast<std::uint64_t>(*slots),
            .rest = integer_of(record.key, record.item, "rest", {1, 1}) != nullptr};
}

void Target::begin() {
    store_.ensure_table(system_table());
    const store::Key keys[] = {format_key(), mark_key()};
    const auto found = patiently(runtime_, [&] { return store_.read(keys); });
    const bool is_of_this = found[1] && store_text(*found[1], "id") == id_;
    if (found[1] && is_of_this) {
        mark_ = decode_mark({mark_key(), *found[1]});
        was_done_ = found[0] && !found[0]->contains(unfinished_attribute);
        if (was_done_) return;
    }
    if (!found[0]) begin_here();
    const std::string other = found[0] ? store_text(*found[0], unfinished_attribute) : std::string{};
    if (found[0] && other.starts_with(id_ + " ")) {
        take_over(*found[0]);
    } else if (found[0]) {
        if (!other.empty()) {
            throw ConfigError("the store is being filled with something else (" + other +
                              "); go on with that, or take an empty one");
        }
        const std::optional<store::Key> slot = first_of(store_, events_table());
        throw ConfigError(
            "the store is not empty: " + (slot ? store::to_string(*slot) : "an application has opened it") +
            (slot ? " is in it" : "") + "; name a new one");
    }
    store_.ensure_table(events_table());
    store_.ensure_table(locks::locks_table());
    store_.ensure_table(events::snapshots_table());
    if (ordered_) return;
    feed::ensure_log_tables(store_);
    static_cast<void>(patiently(runtime_, [&] { return decide_on_bells(store_, {.announced = true, .shards = {}}); }));
    const std::optional<feed::LogItem> last = patiently(runtime_, [&] { return feed::last_item(store_); });
    log_end_ = last ? last->last() : 0;
}

void Target::begin_here() {
    std::vector<const store::TableSchema*> tables{&system_table(), &events_table(), &locks::locks_table(),
                                                  &events::snapshots_table()};
    if (!ordered_) {
        for (const store::TableSchema* table : {&feed::log_table(), &bells_table(), &watermarks_table()})
            tables.push_back(table);
    }
    std::optional<store::Key> found;
    for (const store::TableSchema* table : tables) {
        if (!found) found = patiently(runtime_, [&] { return first_of(store_, *table); });
    }
    if (found) throw ConfigError("the store is not empty: " + store::to_string(*found) + " is in it; name a new one");
    write({{format_key(), store::Put{unfinished(run_)}, !store::item_exists()}});
}

void Target::take_over(const store::Item& format) {
    const store::Item mine = unfinished(run_);
    write_all({{format_key(), store::Put{mine}, is_exactly(format)}},
              [&](const store::Write& write, const std::optional<store::Item>& current) {
                  if (current != mine) throw_written(write.key);
                  return false;
              });
}

void Target::check_is_mine() {
    const store::Key key = format_key();
    const auto format = patiently(runtime_, [&] { return store_.read({&key, 1}); }).front();
    if (format == unfinished(run_)) return;
    throw ConflictError(
        "another run goes on filling this store, or has filled it; this one ends here, and has written nothing since");
}

store::Item Target::mark_item(const Mark& mark) const {
    store::Item item{{"id", id_},
                     {"at", static_cast<std::int64_t>(mark.at)},
                     {"what", mark.what},
                     {"slots", static_cast<std::int64_t>(mark.slots)}};
    if (mark.rest) item.emplace("rest", std::int64_t{1});
    return item;
}

store::Write Target::mark_write(const Mark& next) const {
    const bool is_first = mark_ == Mark{};
    return {mark_key(), store::Put{mark_item(next)},
            is_first ? !store::item_exists() || is_exactly(mark_item(mark_)) : is_exactly(mark_item(mark_))};
}

void Target::pass_by(const Entry& entry) {
    if (const auto* table = std::get_if<TableEntry>(&entry))
        store_.ensure_table(detail::schema_of_rows(table->name, table->sorted));
}

void Target::begin_rest() {
    check_is_mine();
    Mark next = mark_;
    next.rest = true;
    write_mark(next);
    mark_ = next;
    next_.rest = true;
}

void Target::add(Entry entry, Mark mark) {
    const bool is_slot = std::holds_alternative<SlotEntry>(entry);
    if (is_slot && mark_.rest && ordered_) {
        throw ConflictError(
            "programs have written to the old store after what is no slot was copied: their events would get other "
            "places in the new one than followers expect. End them, and begin anew with an empty store");
    }
    if (is_slot != are_slots_) flush();
    if (!is_slot && !mark_.rest) begin_rest();
    are_slots_ = is_slot;
    pass_by(entry);
    if (const auto* feed = std::get_if<FeedEntry>(&entry)) {
        patiently(runtime_, [&] { decide_on_bells(store_, {.announced = true, .shards = feed->shards}); });
    } else if (std::optional<store::Record> record = record_of(entry)) {
        bytes_ += store::bytes(record->key, record->item);
        writes_.push_back({std::move(record->key), store::Put{std::move(record->item)}, !store::item_exists()});
    }
    const std::uint64_t slots = next_.slots + (is_slot ? 1 : 0);
    next_ = std::move(mark);
    next_.slots = slots;
    next_.rest = mark_.rest;
    const std::size_t most = atomic_max_ > 2 ? std::min(atomic_max_ - 2, atomic_writes_at_once) : writes_at_once;
    if (writes_.size() >= most || bytes_ >= bytes_at_once) flush();
}

void Target::flush() {
    if (writes_.empty() && next_ == mark_) return;
    const bool is_replaced = !are_slots_ && existing_ == Existing::replace;
    if (atomic_max_ > 2 && !is_replaced) {
        write_with_mark(next_);
    } else {
        check_is_mine();
        if (ordered_ && are_slots_) {
            // Each gets the position behind the one before it, which no batch promises.
            for (const store::Write& one : writes_) write({one});
        } else {
            write(writes_);
        }
        if (!ordered_ && are_slots_) put_in_log();
        write_mark(next_);
    }
    mark_ = next_;
    writes_.clear();
    bytes_ = 0;
}

void Target::write_with_mark(const Mark& next) {
    writes_.push_back(mark_write(next));
    writes_.push_back({format_key(), store::Check{}, is_exactly(unfinished(run_))});
    for (Backoff backoff{patience, runtime_};;) {
        const store::AtomicAnswer answer = store_.write_atomically(writes_);
        if (std::holds_alternative<store::Applied>(answer)) return;
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            if (!worth_repeating(*failure) || !backoff.next()) raise_certain(*failure);  // to repeat it does no harm
            continue;
        }
        // The mark tells whether it is this very write that was applied before.
        const store::Key key = mark_key();
        if (patiently(runtime_, [&] { return store_.read({&key, 1}); }).front() == mark_item(next)) return;
        const std::size_t index = std::get<store::RefusedBatch>(answer).refused.front().index;
        throw_written(writes_[index].key);
    }
}

void Target::write(std::vector<store::Write> writes) {
    write_all(std::move(writes), [&](store::Write& write, const std::optional<store::Item>& current) {
        const store::Item& wanted = std::get<store::Put>(write.action).item;
        if (current == wanted) return false;
        const bool is_slot = write.key.table == events_table().name;
        if (is_slot || existing_ == Existing::refuse) throw_written(write.key);
        write.condition = current ? is_exactly(*current) : !store::item_exists();
        return true;
    });
}

void Target::write_all(std::vector<store::Write> writes, const Again& again) {
    for (Backoff backoff{patience, runtime_}; !writes.empty();) {
        const std::vector<store::WriteAnswer> answers = store_.write(writes);
        std::vector<store::Write> left;
        std::optional<Failure> failed;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (const auto* failure = std::get_if<Failure>(&answers[i])) {
                if (!worth_repeating(*failure)) raise(*failure);
                failed = *failure;
                left.push_back(std::move(writes[i]));
            } else if (const auto* refused = std::get_if<store::Refused>(&answers[i])) {
                if (again(writes[i], refused->current)) left.push_back(std::move(writes[i]));
            }
        }
        writes = std::move(left);
        if (!writes.empty() && !backoff.next()) {
            if (failed) raise_certain(*failed);  // to repeat it does no harm
            throw_written(writes.front().key);
        }
    }
}

void Target::put_in_log() {
    store::Position position = next_.slots - writes_.size();
    std::map<std::string, Version> watermarks;
    feed::LogItem item{.first = position + 1, .runs = {}};
    std::size_t bytes = 0;
    const auto append = [&] {
        if (item.runs.empty()) return;
        write({feed::append(item)});
        log_end_ = item.last();
        item.runs.clear();
        bytes = 0;
    };
    for (const store::Write& slot : writes_) {
        const std::string& stream = slot.key.partition;
        const Version version = version_of(slot.key);
        watermarks[stream] = version;
        if (++position <= log_end_) continue;
        if (item.runs.empty()) item.first = position;
        feed::Run run{stream, version, version};
        if (!item.runs.empty() && item.runs.back().stream == stream && item.runs.back().last + 1 == version) {
            item.runs.back().last = version;
        } else {
            bytes += feed::stored_bytes(run);
            item.runs.push_back(std::move(run));
        }
        if (item.last() - item.first + 1 >= feed::slots_in_item_max ||
            bytes + feed::stored_bytes(item.runs.back()) >= feed::log_item_bytes_max)
            append();
    }
    append();
    std::vector<store::Write> raised;
    for (auto& [stream, version] : watermarks) raised.push_back(raise_watermark(stream, version));
    write_all(std::move(raised), [](store::Write&, const std::optional<store::Item>&) { return false; });
}

void Target::write_mark(const Mark& next) {
    const store::Item wanted = mark_item(next);
    write_all({mark_write(next)}, [&](const store::Write& write, const std::optional<store::Item>& current) {
        if (current != wanted) throw_written(write.key);
        return false;
    });
}

void Target::complete(std::uint64_t receipts) {
    flush();
    const store::Position expected = mark_.slots + (ordered_ ? receipts : 0);
    const store::Position end =
        patiently(runtime_, [&] { return ordered_ ? store_.last_change(events_table().name) : log_end_; });
    if (end != expected) {
        throw ConflictError("the order of events in the new store ends at " + std::to_string(end) + ", not at " +
                            std::to_string(expected) +
                            ": somebody else has written to it. Begin again with an empty one");
    }
    const store::Item format{{"varve_format", format_version}};
    write_all({{format_key(), store::Put{format}, is_exactly(unfinished(run_))}},
              [&](const store::Write& write, const std::optional<store::Item>& current) {
                  if (current != format) throw_written(write.key);
                  return false;
              });
}

}  // namespace varve::operations
