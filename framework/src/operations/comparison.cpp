#include "operations/comparison.h"

#include "operations/source.h"
#include "operations/target.h"
#include "rows/stored_rows.h"
#include "transactions/row.h"
#include "transactions/slot.h"

#include <varve/core/ids.h>
#include <varve/store/item_text.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr std::size_t differences_max = 100;
constexpr std::size_t records_at_once = 500;
constexpr std::size_t bytes_compared_at_once = std::size_t{4} << 20;

/// The slots of one store, one after the other.
class SlotsInOrder {
  public:
    SlotsInOrder(store::ItemStore& store, Runtime runtime)
        : reader_(store, runtime, 0), end_(patiently(runtime, [&]() -> store::Position {
              if (store.capabilities().ordered_changes) return store.last_change(events_table().name);
              const std::optional<feed::LogItem> last = feed::last_item(store);
              return last ? last->last() : 0;
          })) {}

    /// nullopt: there are no more.
    std::optional<store::Record> next() {
        while (at_ == found_.size()) {
            found_.clear();
            at_ = 0;
            if (!reader_.read(end_, found_)) return std::nullopt;
        }
        return std::move(found_[at_++].slot);
    }

  private:
    SlotReader reader_;
    const store::Position end_;
    std::vector<SlotReader::Found> found_;
    std::size_t at_ = 0;
};

}  // namespace

bool Comparison::is_full() const {
    return found_.size() >= differences_max;
}

void Comparison::add(const store::Key& key, const store::Item* from, const store::Item* to) {
    if (is_full()) return;
    found_.push_back({store::to_string(key), from ? store::item_text(*from) : "", to ? store::item_text(*to) : ""});
}

std::vector<Difference> Comparison::differences() {
    found_.clear();
    slots_ = 0;
    compare_slots();
    compare_rest();
    count_slots();
    others([&](const store::Record& row) { add(row.key, nullptr, &row.item); });
    return std::move(found_);
}

void Comparison::compare_slots() {
    SlotsInOrder old{from_, runtime_};
    SlotsInOrder young{to_, runtime_};
    while (!is_full()) {
        const std::optional<store::Record> from = old.next();
        const std::optional<store::Record> to = young.next();
        if (!from && !to) return;
        slots_ += from ? 1 : 0;
        if (from == to) continue;
        if (from && to && from->key == to->key) {
            add(from->key, &from->item, &to->item);
        } else {
            // In another order, or one too few: from here on all would differ.
            if (from) add(from->key, &from->item, nullptr);
            if (to) add(to->key, nullptr, &to->item);
            return;
        }
    }
}

void Comparison::compare_rest() {
    std::vector<store::Record> batch;
    std::size_t bytes = 0;
    const auto compare = [&] {
        std::vector<store::Key> keys;
        for (const store::Record& one : batch) keys.push_back(one.key);
        const auto items = patiently(runtime_, [&] { return to_.read(keys); });
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (items[i] != batch[i].item) add(keys[i], &batch[i].item, items[i] ? &*items[i] : nullptr);
        }
        batch.clear();
        bytes = 0;
    };
    Source old{from_, runtime_};
    old.begin_quiet();
    old.rest([&](const Entry& entry) {
        slots_ += std::holds_alternative<ReceiptEntry>(entry);
        std::optional<store::Record> record = record_of(entry);
        if (!record) return true;
        bytes += store::bytes(record->key, record->item);
        batch.push_back(*std::move(record));
        if (batch.size() >= records_at_once || bytes >= bytes_compared_at_once) compare();
        return !is_full();
    });
    compare();
}

void Comparison::count_slots() {
    if (is_full()) return;
    std::uint64_t slots = 0;
    store::Scan scan{.table = events_table().name};
    do {
        store::Page page = patiently(runtime_, [&] { return to_.scan(scan); });
        slots += page.records.size();
        scan.next = std::move(page.next);
    } while (scan.next);
    if (slots == slots_ || !found_.empty()) return;
    found_.push_back({"the number of slots in " + events_table().name, std::to_string(slots_), std::to_string(slots)});
}

void Comparison::others(const std::function<void(const store::Record&)>& take) {
    for (const TableEntry& table : Source{from_, runtime_}.tables_of_rows()) {
        to_.ensure_table(detail::schema_of_rows(table.name, table.sorted));
        store::Scan scan{.table = table.name, .limit = records_at_once};
        do {
            store::Page page = patiently(runtime_, [&] { return to_.scan(scan); });
            std::erase_if(page.records, [](const store::Record& row) { return is_tombstone(row.item); });
            std::vector<store::Key> keys;
            for (const store::Record& row : page.records) keys.push_back(row.key);
            const auto items = patiently(runtime_, [&] { return from_.read(keys); });
            for (std::size_t i = 0; i < keys.size(); ++i) {
                if (!items[i] || is_tombstone(*items[i])) take(page.records[i]);
            }
            scan.next = std::move(page.next);
        } while (scan.next);
    }
}

void Comparison::remove_others() {
    constexpr std::chrono::hours kept_for{1};
    const Time until = runtime_.clock.get().now() + kept_for;
    const std::int64_t expires = std::chrono::floor<std::chrono::seconds>(until).time_since_epoch().count();
    std::vector<store::Write> writes;
    const auto write = [&] {
        for (const store::WriteAnswer& answer : to_.write(writes)) {
            if (const auto* failure = std::get_if<Failure>(&answer)) raise_certain(*failure);  // it is found once more
        }
        writes.clear();
    };
    others([&](const store::Record& row) {
        writes.push_back(
            {row.key, store::Put{{{"_rev", uuid7(runtime_)}, {"_expires", expires}}}, is_exactly(row.item)});
        if (writes.size() >= records_at_once) write();
    });
    if (!writes.empty()) write();
}

}  // namespace varve::operations
