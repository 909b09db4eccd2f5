#include "commands/verification.h"

#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/workspace.h"
#include "rows/stored_rows.h"
#include "transactions/read_patiently.h"
#include "transactions/reservation.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

#include <algorithm>
#include <new>
#include <set>
#include <tuple>
#include <utility>

namespace varve::detail {

using namespace transactions;

namespace {

constexpr std::size_t together = 50;  // rows that are compared at once

// The rows of an inline projection are there with the acknowledgement, its events perhaps a moment later (F4).
constexpr int looks = 20;
constexpr Duration pause = std::chrono::milliseconds{50};

}  // namespace

Verification::Verification(Application& application, Consumer consumer, Kind kind, std::size_t bytes_max)
    : application_(application),
      parts_(parts_of(application)),
      consumer_(std::move(consumer)),
      partitions_(partitions_of(consumer_)),
      kind_(kind),
      feed_(parts_of(application).coordinator.store()),
      memory_(bytes_max),
      done_(partitions_.size(), 0) {}

Verification::Places Verification::place(Transaction& tx) const {
    if (kind_ == Kind::inline_) return {feed_.end()};
    Places places;
    for (const Consumer& one : partitions_) {
        const Checkpoint checkpoint = tx.rows<Checkpoint>().get(one.name).value_or(Checkpoint{});
        if (checkpoint.parked > 0) {
            throw InvalidError("the rows of the follower '" + one.name +
                               "' lack the events of streams that are set aside (" + std::to_string(checkpoint.parked) +
                               "); call retry_parked before verify");
        }
        places.push_back(static_cast<store::Position>(checkpoint.position));
    }
    return places;
}

void Verification::fold(Transaction& tx, const Places& to) {
    Workspace& workspace = Workspace::of(tx);
    const Workspace::OnOtherRows elsewhere{workspace, memory_};
    store::Position at = std::ranges::max(to);
    const store::Position end = at;
    for (std::size_t i = 0; i < to.size(); ++i) {
        if (done_[i] < to[i]) at = std::min(at, done_[i]);
    }
    while (at < end) {
        feed::Batch batch = feed_.read(at, consumer_.options.batch_max, consumer_.filter);
        for (RecordedEvent& event : batch.events) {
            const auto i = static_cast<std::size_t>(
                feed::Partition::number_for(event.stream, static_cast<std::int64_t>(to.size())) - 1);
            if (event.position <= done_[i] || event.position > to[i]) continue;
            const RecordedEvent seen = event;
            if (kind_ == Kind::inline_) event.position = 0;
            try {
                consumer_.project(tx, event);
            } catch (const std::bad_alloc&) {
                throw;
            } catch (const std::exception& error) {
                throw InvalidError("'" + consumer_.name + "' cannot be folded again at " + described(seen) + ": " +
                                   error.what());
            }
            ++events_;
        }
        if (batch.is_last) return;
        at = batch.end;
        for (std::size_t i = 0; i < to.size(); ++i) done_[i] = std::max(done_[i], std::min(batch.end, to[i]));
    }
}

void Verification::fold_to_place() {
    own_transaction(application_, [&](Transaction& tx) { fold(tx, place(tx)); }).value();
}

bool Verification::is_same(const RowTable& table, const RowKey& key, const std::optional<std::string>& stored,
                           const std::optional<std::string>& expected) const {
    if (stored == expected) return true;
    if (!stored || !expected) return false;
    try {
        return table.rewritten(key, *stored) == *expected;  // an older program may have written it
    } catch (const CorruptionError&) {
        return false;
    }
}

StoredPage Verification::page(const RowTable& table, std::string next) const {
    constexpr std::size_t at_once = 1000;
    parts_.ensure(table);
    return parts_.all(table, {.limit = at_once, .next = std::move(next)}, Isolation::committed);
}

void Verification::refuse_rows_of_others() const {
    for (const auto& [name, table] : memory_.tables()) {
        if (table.is_written) continue;
        StoredPage stored = page(*table.type, {});
        while (stored.rows.empty() && !stored.next.empty()) stored = page(*table.type, std::move(stored.next));
        if (stored.rows.empty()) continue;
        throw InvalidError("'" + consumer_.name + "' reads the rows of '" + std::string{name} +
                           "', which it does not write: what they were at each event is not known any more, so it "
                           "cannot be folded again");
    }
}

Verified Verification::run() {
    if (kind_ == Kind::inline_) wait_for_feed([] {});
    fold_to_place();
    refuse_rows_of_others();
    std::set<std::string_view> done;
    const auto is_new = [&](const auto& table) { return !done.contains(table.first); };
    for (;;) {  // events that come meanwhile may bring a table
        const auto next = std::ranges::find_if(memory_.tables(), is_new);
        if (next == memory_.tables().end() || is_full()) break;
        done.insert(next->first);
        compare(next->first);
    }
    std::ranges::sort(differences_, {}, [](const RowDifference& one) { return std::tie(one.table, one.key); });
    return {.position = std::ranges::min(done_),
            .events = events_,
            .rows = static_cast<std::int64_t>(memory_.size()),
            .differences = std::move(differences_)};
}

void Verification::compare(std::string_view name) {
    const RowsInMemory::Table& table = memory_.tables().at(name);
    std::string next;
    do {
        memory_.note_changes();
        StoredPage stored = page(*table.type, std::move(next));
        fold_to_place();
        std::vector<RowKey> suspects;
        for (StoredRow& row : stored.rows) {
            const auto expected = table.rows.find(row.key);
            const bool is_expected = expected != table.rows.end();
            if (is_expected) memory_.mark({name, row.key});
            if (!is_expected || memory_.has_changed({name, row.key}) ||
                !is_same(*table.type, row.key, row.data, expected->second.data))
                suspects.push_back(std::move(row.key));
        }
        compare(suspects, *table.type);
        next = std::move(stored.next);
    } while (!next.empty() && !is_full());

    std::optional<RowKey> last;
    for (std::vector<RowKey> missed; !is_full(); missed.clear()) {
        auto row = last ? table.rows.upper_bound(*last) : table.rows.begin();
        for (; row != table.rows.end() && missed.size() < together; ++row) {
            if (!row->second.is_marked) missed.push_back(row->first);
        }
        if (missed.empty()) break;
        last = missed.back();
        memory_.note_changes();
        compare(missed, *table.type);
    }
}

void Verification::compare(std::span<const RowKey> rows, const RowTable& table) {
    for (std::size_t at = 0; at < rows.size(); at += together) {
        const std::span<const RowKey> some = rows.subspan(at, std::min(together, rows.size() - at));
        for (Compared& one : kind_ == Kind::follows ? compare_at_place(some, table) : compare_standing(some, table)) {
            if (one.is_same) continue;
            if (is_full()) return;
            differences_.push_back({.table = std::string{table.type.name},
                                    .key = std::move(one.key),
                                    .stored = std::move(one.stored),
                                    .expected = std::move(one.expected)});
        }
    }
}

Verification::Compared Verification::compared(const RowKey& row, const RowTable& table,
                                              std::optional<std::string> stored) const {
    Compared one{.key = row, .stored = std::move(stored), .expected = {}};
    const RowsInMemory::Table& in = memory_.tables().at(table.type.name);
    if (const auto expected = in.rows.find(row); expected != in.rows.end()) one.expected = expected->second.data;
    one.is_same = is_same(table, row, one.stored, one.expected);
    return one;
}

std::vector<Verification::Compared> Verification::compare_at_place(std::span<const RowKey> rows,
                                                                   const RowTable& table) {
    std::vector<Compared> found;
    const bool is_kept = consumer_.build && !table.kept_by.empty();
    const RowTable& there = is_kept ? parts_.row_tables.of_build(table, consumer_.build->number) : table;
    own_transaction(application_, [&](Transaction& tx) {
        Workspace& work = Workspace::of(tx);
        const Workspace::Keeping keeping{work, consumer_.build ? &*consumer_.build : nullptr};
        std::vector<store::Key> keys;
        for (const RowKey& row : rows) keys.push_back(stored_key(there, row));
        work.read_ahead(std::move(keys));
        std::vector<std::optional<std::string>> stored;
        for (const RowKey& row : rows) stored.push_back(work.read(table, row));
        fold(tx, place(tx));
        found.clear();
        for (std::size_t i = 0; i < rows.size(); ++i) found.push_back(compared(rows[i], table, std::move(stored[i])));
    }).value();
    return found;
}

std::vector<Image> Verification::images(std::span<const RowKey> rows, const RowTable& table) const {
    std::vector<store::Key> keys;
    for (const RowKey& row : rows) keys.push_back(stored_key(table, row));
    return read_patiently(parts_.coordinator, SteadyTime::max(),
                          [&] { return parts_.coordinator.reader().rows(keys, Isolation::committed); });
}

void Verification::wait_for_feed(const std::function<void()>& meanwhile) const {
    constexpr Duration patience = std::chrono::minutes{1};
    Clock& clock = application_.runtime().clock;
    const SteadyTime until = clock.until(patience);
    while (!feed_.wait_for({}, clock, std::min(until, clock.until(parts_.options.transactions.lease / 4)))) {
        if (clock.steady_now() >= until) {
            throw UnavailableError("'" + consumer_.name +
                                   "' cannot be folded again: what was committed is not put in order; keep a program "
                                   "with ApplicationOptions::feed running");
        }
        meanwhile();
    }
}

std::vector<Verification::Compared> Verification::compare_standing(std::span<const RowKey> rows,
                                                                   const RowTable& table) {
    constexpr int looks_at_moving = 3;
    std::vector<RowKey> left{rows.begin(), rows.end()};
    std::vector<RowKey> moving;
    std::vector<Compared> different;
    for (int look = 1;; ++look) {
        const std::vector<Image> before = images(left, table);
        wait_for_feed([] {});
        fold_to_place();
        std::vector<Image> after = images(left, table);
        moving.clear();
        different.clear();
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (before[i].rev != after[i].rev) {
                moving.push_back(std::move(left[i]));
            } else if (Compared one = compared(left[i], table, std::move(after[i].data)); !one.is_same) {
                different.push_back(std::move(one));
            }
        }
        if (look >= (different.empty() ? looks_at_moving : looks) || (moving.empty() && different.empty())) break;
        left = moving;
        for (const Compared& one : different) left.push_back(one.key);
        application_.runtime().clock.get().sleep_for(pause);
    }
    for (const RowKey& row : moving) different.push_back(compare_held(row, table));
    return different;
}

Verification::Compared Verification::compare_held(const RowKey& row, const RowTable& table) {
    const store::Key key = stored_key(table, row);
    Clock& clock = application_.runtime().clock;
    for (Backoff backoff{parts_.options.retry, application_.runtime()};;) {
        try {
            Reservation held{parts_.coordinator, uuid7(application_.runtime()), clock.now(), backoff.until()};
            const std::optional<std::string> stored = held.hold(key).data;
            for (int look = 1;; ++look) {
                wait_for_feed([&] { held.renew_leases(); });
                fold_to_place();
                Compared one = compared(row, table, stored);
                if (one.is_same || look == looks) {
                    if (held.is_alive()) return one;
                    break;
                }
                clock.sleep_for(pause);
                held.renew_leases();
            }
        } catch (const BlockedError&) {
            // Somebody older was in the way.
        }
        if (!backoff.next()) {
            throw ConflictError("the row " + store::to_string(key) +
                                    " is changed so often that it could not be compared; verify when less is going on",
                                lost_at(key));
        }
    }
}

}  // namespace varve::detail
