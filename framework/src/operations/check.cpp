#include "operations/check_run.h"
#include "transactions/in_turn.h"
#include "transactions/reader.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::operations {

using namespace transactions;

void CheckRun::find(std::string rule, std::string item, std::string what) {
    if (found_.size() >= options.findings_max) return;
    found_.try_emplace({std::move(rule), std::move(item)}, std::move(what));
}

bool CheckRun::goes_on() {
    has_ended_ = has_ended_ || options.stop.stop_requested() || found_.size() >= options.findings_max;
    return !has_ended_;
}

void CheckRun::tell(std::string_view looks_at) const {
    if (options.on_progress) options.on_progress({looks_at, items_, found_.size()});
}

CheckReport CheckRun::end() && {
    for (const auto& [broken, what] : found_) report.findings.push_back({broken.first, broken.second, what});
    std::ranges::sort(report.not_checked);
    report.is_complete = goes_on() && report.not_checked.empty();
    return std::move(report);
}

void CheckRun::each_page(const std::string& table, const std::function<void(std::vector<store::Record>&)>& look) {
    store::Scan scan{.table = table};
    while (goes_on()) {
        store::Page page = store.scan(scan);
        items_ += page.records.size();
        look(page.records);
        tell(table);
        if (!page.next) return;
        scan.next = std::move(page.next);
    }
}

void CheckRun::know(const store::TableSchema& schema) {
    store.ensure_table(schema);
    tables_.insert_or_assign(schema.name, schema);
}

bool CheckRun::knows(const std::string& table) {
    if (!tables_.contains(table)) learn(table);
    return tables_.contains(table);
}

bool CheckRun::may_be(const store::Key& key) try {
    if (!knows(key.table)) return false;
    store::check(tables_.at(key.table), key);
    return true;
} catch (const InvalidError&) {
    return false;
}

std::optional<std::vector<Image>> CheckRun::at_one_moment(std::span<const store::Key> rows) try {
    return parts.coordinator.reader().rows(rows, Isolation::snapshot);
} catch (const ConflictError&) {
    return std::nullopt;
} catch (const CorruptionError&) {  // found where it is met
    return std::nullopt;
}

Image CheckRun::image(const store::Key& row) try {
    return parts.coordinator.reader().rows({&row, 1}, Isolation::committed).front();
} catch (const CorruptionError&) {
    return {};
}

std::optional<bool> CheckRun::is_committed(const store::Key& slot) try {
    const Slot decoded = decode_slot(slot, item(slot));
    if (std::holds_alternative<Committed>(decoded)) return true;
    const auto* pending = std::get_if<Pending>(&decoded);
    if (pending == nullptr) return false;
    return parts.coordinator.resolver().look(pending->claim).verdict == Verdict::committed;
} catch (const CorruptionError&) {
    return std::nullopt;
}

std::optional<std::vector<store::Key>> participants_of(CheckRun& run, const store::Key& primary,
                                                       const Committed& commit) {
    if (commit.continued == 0) return commit.participants;
    std::vector<store::Key> slots;
    for (std::int64_t i = 0; i < commit.continued; ++i)
        slots.push_back(slot_key(transaction_stream(commit.write_id), i + 2));
    std::vector<store::Key> all;
    bool is_whole = true;
    read_in_turn(run.store, slots, [&](std::size_t i, std::optional<store::Item> item) {
        const auto look = [&] {
            const Slot slot = decode_slot(slots[i], std::move(item));
            const auto* part = std::get_if<Part>(&slot);
            if (part == nullptr) {
                throw CorruptionError("the primary " + store::to_string(primary) +
                                      " has committed and continues its participants there, and that is no part of "
                                      "them");
            }
            all.insert(all.end(), part->participants.begin(), part->participants.end());
        };
        is_whole = readable(run, slots[i], look, "lost-participant") && is_whole;
    });
    return is_whole ? std::optional{std::move(all)} : std::nullopt;
}

CheckReport check(Application& application, const CheckOptions& options) {
    CheckRun run{application, options};
    for (const detail::AggregateProjection& one : run.parts.projections.all()) run.parts.repository.meet(one.aggregate);
    struct Part {
        const char* name;
        void (*run)(CheckRun&);
    };
    constexpr Part parts[] = {{"settings", check_settings},
                              {"slots", check_slots},
                              {"rows", check_rows},
                              {"locks", check_locks},
                              {"snapshots", check_snapshots},
                              {"the log", check_log},
                              {"projections", check_projections}};
    for (const Part& part : parts) {
        if (!run.goes_on()) break;
        try {
            part.run(run);
        } catch (const CorruptionError& error) {  // of the store's own, which names the item and gives no page with it
            run.find("unreadable", std::string{part.name}, error.what());
            run.report.not_checked.push_back(std::string{"the rest of "} + part.name +
                                             ": the store itself cannot read an item there");
        }
    }
    return std::move(run).end();
}

}  // namespace varve::operations
