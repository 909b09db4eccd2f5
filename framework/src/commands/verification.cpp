#include "commands/verification.h"

#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/workspace.h"

#include <varve/core/error.h>

#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

namespace varve::detail {

namespace {
constexpr std::size_t together = 50;  // rows that one transaction compares
}

Verification::Verification(Application& application, Consumer consumer, Kind kind, std::size_t bytes_max)
    : application_(application),
      consumer_(std::move(consumer)),
      kind_(kind),
      feed_(application.store()),
      memory_(bytes_max) {}

store::Position Verification::place(Transaction& tx) const {
    if (kind_ == Kind::inline_) return feed_.end();
    const Checkpoint checkpoint = tx.rows<Checkpoint>().get(consumer_.name).value_or(Checkpoint{});
    if (checkpoint.parked > 0) {
        throw InvalidError("the rows of the follower '" + consumer_.name +
                           "' lack the events of streams that are set aside (" + std::to_string(checkpoint.parked) +
                           "); call retry_parked before verify");
    }
    return static_cast<store::Position>(checkpoint.position);
}

void Verification::fold(Transaction& tx, store::Position to) {
    Workspace& workspace = Workspace::of(tx);
    const Workspace::OnOtherRows elsewhere{workspace, memory_};
    while (done_ < to) {
        feed::Batch batch = feed_.read(done_, consumer_.options.batch_max, consumer_.filter);
        for (RecordedEvent& event : batch.events) {
            if (event.position > to) break;
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
        done_ = std::min(batch.end, to);
    }
}

void Verification::fold_to_place() {
    application_.transact([&](Transaction& tx) { fold(tx, place(tx)); }).value();
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
    ApplicationParts& parts = parts_of(application_);
    parts.ensure(table);
    return parts.all(table, {.limit = at_once, .next = std::move(next)}, transactions::Isolation::committed);
}

std::set<RowsInMemory::Name> Verification::suspects() {
    std::set<RowsInMemory::Name> found;
    for (const auto& [name, table] : memory_.tables()) {
        std::unordered_set<const RowKey*> met;
        std::string next;
        do {
            StoredPage stored = page(*table.type, std::move(next));
            for (const StoredRow& row : stored.rows) {
                const auto expected = table.rows.find(row.key);
                const bool is_expected = expected != table.rows.end();
                if (is_expected) met.insert(&expected->first);
                if (!is_expected || !is_same(*table.type, row.key, row.data, expected->second))
                    found.insert({name, row.key});
            }
            next = std::move(stored.next);
        } while (!next.empty());
        for (const auto& [key, data] : table.rows) {
            if (!met.contains(&key)) found.insert({name, key});
        }
    }
    return found;
}

std::vector<Verification::Compared> Verification::compare(std::span<const RowsInMemory::Name> names) {
    std::vector<Compared> compared;
    application_
        .transact([&](Transaction& tx) {
            compared.clear();
            for (const RowsInMemory::Name& name : names) {
                const RowTable& table = *memory_.tables().at(name.table).type;
                compared.push_back({.name = name, .stored = Workspace::of(tx).read(table, name.key), .expected = {}});
            }
            fold(tx, place(tx));
            for (Compared& one : compared) {
                const RowsInMemory::Table& table = memory_.tables().at(one.name.table);
                const auto expected = table.rows.find(one.name.key);
                if (expected != table.rows.end()) one.expected = expected->second;
                one.is_same = is_same(*table.type, one.name.key, one.stored, one.expected);
            }
        })
        .value();
    return compared;
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
    fold_to_place();
    refuse_rows_of_others();
    memory_.note_changes();
    const std::set<RowsInMemory::Name> different = suspects();
    fold_to_place();
    std::set<RowsInMemory::Name> left = memory_.changed();  // each may have been read before or after
    left.insert(different.begin(), different.end());

    Verified verified;
    std::vector<RowsInMemory::Name> names{left.begin(), left.end()};
    for (std::size_t at = 0; at < names.size(); at += together) {
        const std::span chunk = std::span{names}.subspan(at, std::min(together, names.size() - at));
        for (Compared& one : compare_patiently(chunk)) {
            if (one.is_same) continue;
            if (verified.differences.size() == Verified::differences_max) break;
            verified.differences.push_back({.table = std::string{one.name.table},
                                            .key = std::move(one.name.key),
                                            .stored = std::move(one.stored),
                                            .expected = std::move(one.expected)});
        }
    }
    verified.position = done_;
    verified.events = events_;
    verified.rows = static_cast<std::int64_t>(memory_.size());
    return verified;
}

std::vector<Verification::Compared> Verification::compare_patiently(std::span<const RowsInMemory::Name> names) {
    constexpr int times = 20;
    constexpr Duration pause = std::chrono::milliseconds{50};
    constexpr Duration patience = std::chrono::minutes{1};
    Clock& clock = application_.runtime().clock;
    std::vector<Compared> compared = compare(names);
    // The rows of an inline projection are there with the acknowledgement, its events perhaps a moment later (F4).
    for (int i = 0; kind_ == Kind::inline_ && i < times && !std::ranges::all_of(compared, &Compared::is_same); ++i) {
        if (!feed_.wait_for({}, clock, clock.until(patience))) {
            throw UnavailableError("'" + consumer_.name +
                                   "' cannot be folded again: what was committed is not put in order; keep a program "
                                   "with ApplicationOptions::feed running");
        }
        clock.sleep_for(pause);
        compared = compare(names);
    }
    return compared;
}

}  // namespace varve::detail
