#include "protocol/ledger.h"

#include "feed/log.h"
#include "locks/stored_lock.h"
#include "transactions/row.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/store/adapter.h>

#include <algorithm>
#include <set>

namespace varve::protocol {

using namespace transactions;

namespace {

bool is_slot(const store::Key& key) {
    return key.table == events_table().name;
}

bool is_internal_table(std::string_view table) {
    return table == system_table().name || table == locks::locks_table().name;
}

/// The write id of an item's committed content; empty: it has none.
std::string revision(const store::Key& key, const std::optional<store::Item>& item) {
    if (!item) return {};
    const std::string* found = nullptr;
    if (!is_slot(key)) {
        found = store::text(*item, "_rev");
    } else if (const std::string* state = store::text(*item, "state"); state && *state == "committed") {
        found = store::text(*item, "write_id");
    }
    return found ? *found : std::string{};
}

/// A tombstone upon nothing, or what has the same content, and the same claim, as before.
bool is_only_another_revision(const std::optional<store::Item>& before, const store::Item& after) {
    const auto same = [&](const char* name) {
        const std::string* is = store::text(after, name);
        const std::string* was = before ? store::text(*before, name) : nullptr;
        return is == nullptr ? was == nullptr : was != nullptr && *was == *is;
    };
    return same("data") && same("_tx");
}

}  // namespace

std::vector<std::string> Ledger::revisions(const store::Key& key) const {
    std::vector<std::string> revisions;
    for (const Effect& effect : effects_) {
        if (effect.key == key) revisions.push_back(effect.rev);
    }
    return revisions;
}

std::string Ledger::origin(const std::string& revision) const {
    const auto found = origins_.find(revision);
    return found == origins_.end() ? revision : found->second;
}

void Ledger::ensure_table(const store::TableSchema& schema) {
    inner().ensure_table(schema);
    const std::lock_guard lock{mutex_};
    tables_.insert(schema.name);
}

std::vector<std::string> Ledger::row_tables() const {
    std::vector<std::string> tables;
    const std::lock_guard lock{mutex_};
    for (const std::string& table : tables_) {
        const bool is_internal = is_internal_table(table) || feed::is_log_table(table);
        if (!is_internal && table != events_table().name) tables.push_back(table);
    }
    return tables;
}

std::vector<store::WriteAnswer> Ledger::write(std::span<const store::Write> writes) {
    const std::lock_guard lock{mutex_};
    std::vector<store::WriteAnswer> answers;
    for (const store::Write& one : writes) {
        const std::optional<store::Item> before = inner().read({&one.key, 1}).front();
        answers.push_back(inner().write({&one, 1}).front());
        if (std::holds_alternative<store::Applied>(answers.back())) enter(one, before, false);
    }
    return answers;
}

store::AtomicAnswer Ledger::write_atomically(std::span<const store::Write> writes) {
    const std::lock_guard lock{mutex_};
    std::vector<store::Key> keys;
    for (const store::Write& one : writes) keys.push_back(one.key);
    const std::vector<std::optional<store::Item>> before = inner().read(keys);
    store::AtomicAnswer answer = inner().write_atomically(writes);
    if (std::holds_alternative<store::Applied>(answer)) {
        for (std::size_t i = 0; i < writes.size(); ++i) enter(writes[i], before[i], true);
    }
    return answer;
}

void Ledger::enter(const store::Write& write, const std::optional<store::Item>& before, bool atomic) {
    if (std::holds_alternative<store::Check>(write.action) || is_internal_table(write.key.table)) return;
    ++applied_;
    const std::optional<store::Item> after = store::apply(write, before ? &*before : nullptr);
    const std::string was = revision(write.key, before);
    const std::string is = revision(write.key, after);
    if (is_slot(write.key) && !was.empty())
        written_again_.push_back("F1: " + store::to_string(write.key) + " was committed, and is written again");
    if (after && after->contains(is_slot(write.key) ? "reserved" : "_reserved")) {
        if (const std::string* tx = store::text(*after, "_tx")) {
            reserved_.emplace(*tx, write.key);
        } else {
            early_.push_back("Q3: " + store::to_string(write.key) + " is reserved, but by nobody");
        }
    } else if (!is_slot(write.key) && after && after->contains("_tx")) {
        reserved_.erase({*store::text(*after, "_tx"), write.key});  // what shall become of it has been said
    }
    if (is_slot(write.key) && after && after->contains("state") && after->at("state") == store::Value{"part"}) {
        // The rest of a long list of participants: it means nothing without the commit.
        const Part part = std::get<Part>(decode_slot(write.key, after));
        continued_[part.write_id][version_of(write.key)] = part.participants;
        return;
    }
    if (after && after->contains("done") && !before->contains("done")) enter_done(is);
    if (is.empty() || is == was) return;
    if (!is_slot(write.key) && is_only_another_revision(before, after.value())) {
        origins_[is] = origin(was);
        return;
    }
    effects_.push_back({write.key, applied_, is, origin(was)});

    // What was claimed follows a decision that was made elsewhere, with one exception: a prepared primary.
    const auto claim = before ? claim_on(write.key, *before) : std::nullopt;
    if (claim && !(is_slot(write.key) && claim->primary == write.key)) return;
    Commit& commit = commits_.try_emplace(is, Commit{applied_, {}}).first->second;
    commit.items.push_back(write.key);
    if (!atomic && is_slot(write.key)) {
        const Slot slot = decode_slot(write.key, after);
        const auto& content = std::get<Committed>(slot);
        std::vector<store::Key> others = content.participants;
        for (std::int64_t i = 0; i < content.continued; ++i)
            std::ranges::copy(continued_[is][i + 2], std::back_inserter(others));
        for (std::size_t i = 0; i < others.size(); ++i) {
            // A stream that was reserved and got no events takes no part.
            const std::string prefix = std::to_string(i) + ":";
            const auto copied = content.payload.lower_bound(prefix);
            const bool has_payload = copied != content.payload.end() && copied->first.starts_with(prefix);
            if (has_payload || !reserved_.contains({is, others[i]})) commit.items.push_back(others[i]);
        }
    }
    std::ranges::sort(commit.items);
}

void Ledger::enter_done(const std::string& tx) {
    const auto commit = commits_.find(tx);
    for (const store::Key& key : commit == commits_.end() ? std::vector<store::Key>{} : commit->second.items) {
        const bool there = std::ranges::any_of(effects_, [&](const Effect& e) { return e.key == key && e.rev == tx; });
        if (!there)
            early_.push_back("done: " + tx + " was marked done before " + store::to_string(key) + " was finalised");
    }
}

std::vector<store::Record> Ledger::contents(const std::vector<std::string>& tables) {
    std::vector<store::Record> records;
    for (const std::string& table : tables) {
        store::Scan scan{.table = table};
        do {
            store::Page page = inner().scan(scan);
            std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
            scan.next = std::move(page.next);
        } while (scan.next);
    }
    std::ranges::sort(records, {}, &store::Record::key);
    return records;
}

std::vector<std::string> Ledger::violations_at_rest(const std::vector<std::string>& tables) {
    std::vector<std::string> found = early_;
    std::map<std::string, std::vector<store::Key>> done;
    for (const Effect& effect : effects_) done[effect.rev].push_back(effect.key);
    for (auto& [tx, items] : done) {
        std::ranges::sort(items);
        const auto commit = commits_.find(tx);
        if (commit == commits_.end()) {
            found.push_back("Q1: " + tx + " never committed, but is in " + store::to_string(items.front()));
        } else if (items != commit->second.items) {
            std::string line = "Q1: " + tx + " writes";
            for (const store::Key& key : commit->second.items) line += " " + store::to_string(key);
            line += "; it came into";
            for (const store::Key& key : items) line += " " + store::to_string(key);
            found.push_back(std::move(line));
        }
    }
    for (const auto& [tx, commit] : commits_) {
        if (!done.contains(tx)) found.push_back("Q1: " + tx + " committed, but is nowhere");
    }
    for (const store::Record& record : contents(tables)) {
        for (const char* left : {"_tx", "_primary", "_primary_version", "_primary_epoch", "_lease", "_priority",
                                 "_after", "_was_expires", "_was_data"}) {
            if (!record.item.contains(left)) continue;
            found.push_back("Q3: " + store::to_string(record.key) + " still has " + left);
            break;
        }
    }
    return found;
}

}  // namespace varve::protocol
