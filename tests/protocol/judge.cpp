#include "protocol/judge.h"

#include "commands/application_parts.h"
#include "events/stored_slot.h"
#include "protocol/following.h"
#include "transactions/slot.h"

#include <varve/core/json.h>
#include <varve/operations/check.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <set>

namespace varve::protocol {

using namespace transactions;

namespace {

std::string operation(std::int64_t id) {
    return "operation " + std::to_string(id);
}

/// The operations of all effects that are stored.
std::multiset<std::int64_t> announcements(Ledger& ledger) {
    std::multiset<std::int64_t> operations;
    for (store::Record& record : ledger.contents({"events"})) {
        const Slot slot = decode_slot(record.key, std::move(record.item));
        const auto* committed = std::get_if<Committed>(&slot);
        if (committed == nullptr) continue;
        for (const Effect& effect : events::decode_effects(record.key.partition, version_of(record.key), *committed)) {
            if (effect.effect.type != event_name<Announce>()) continue;
            operations.insert(json::decode<Announce>(effect.effect.data).value().operation);
        }
    }
    return operations;
}

/// An effect is there exactly once if its command has committed, else it is not.
void judge_effects(const std::multiset<std::int64_t>& announced, const Record& record,
                   std::vector<std::string>& found) {
    for (const auto& [id, command] : record.commands) {
        const std::size_t count = announced.count(id);
        const Told told = command.told();
        const bool honest = told == Told::committed ? count == (command.announces ? 1u : 0u)
                            : told == Told::aborted ? count == 0
                                                    : count <= (command.announces ? 1u : 0u);
        if (!honest) found.push_back("effects: " + operation(id) + " has left " + std::to_string(count));
    }
}

void judge_bank(Application& application, const Record& record, const Scale& scale,
                const std::multiset<std::int64_t>& announced, std::vector<std::string>& found) {
    std::map<std::int64_t, std::size_t> events;
    std::int64_t sum = 0;
    for (std::uint64_t i = 0; i < scale.keys; ++i) {
        const std::string id = std::to_string(i);
        std::int64_t cents = 0;
        for (const RecordedEvent& one : application.history<Account>(id).events) {
            const auto event = EventVariant<Account::Event>::decode(one).front();
            std::visit([&](const auto& e) { ++events[e.operation]; }, event);
            if (const auto* deposited = std::get_if<Deposited>(&event)) cents += deposited->cents;
            if (const auto* withdrawn = std::get_if<Withdrawn>(&event)) cents -= withdrawn->cents;
            if (cents < 0)
                found.push_back("bank: account " + id + " was overdrawn at version " + std::to_string(one.version));
        }
        sum += cents;
        const std::int64_t row = application.rows<Balance>().get(id).value_or(Balance{}).cents;
        if (row != cents) {
            found.push_back("bank: account " + id + " has " + std::to_string(cents) + ", its row says " +
                            std::to_string(row));
        }
    }
    const std::int64_t expected = static_cast<std::int64_t>(scale.keys) * scale.money;
    if (sum != expected)
        found.push_back("bank: the sum is " + std::to_string(sum) + ", not " + std::to_string(expected));
    for (const auto& [id, command] : record.commands) {
        if (!command.moves_money) continue;
        const std::size_t count = events.contains(id) ? events[id] : 0;
        const bool honest = command.told() == Told::committed ? count == 2
                            : command.told() == Told::aborted ? count == 0
                                                              : count == 0 || count == 2;
        if (!honest)
            found.push_back("Q2: " + operation(id) + " has left " + std::to_string(count) +
                            " events; told: " + command.why);
        if (command.announces && announced.count(id) != count / 2)
            found.push_back("effects: " + operation(id) + " has left " + std::to_string(count) + " events and " +
                            std::to_string(announced.count(id)) + " effects");
    }
}

void judge_history(const checkers::History& history, const std::set<checkers::Anomaly>& allowed,
                   std::vector<std::string>& found) {
    for (const checkers::Finding& finding : checkers::check(history)) {
        if (allowed.contains(finding.anomaly)) continue;
        std::string line = "lists: " + std::string{checkers::name(finding.anomaly)};
        for (const std::string& edge : finding.explanation) line += "\n      " + edge;
        found.push_back(std::move(line));
    }
}

void judge_lists(Application& application, Record& record, const Scale& scale, std::int64_t moment,
                 std::vector<std::string>& found) {
    // The end belongs into the history: an acknowledged append that is gone shows here.
    for (std::uint64_t i = 0; i < scale.keys; ++i) {
        for (const char* kind : {"s", "r"}) {
            const std::string key = kind + std::to_string(i);
            std::vector<std::int64_t> values = *kind == 's'
                                                   ? application.load<List>(key).state.values
                                                   : application.rows<ListRow>().get(key).value_or(ListRow{}).values;
            record.lists.transactions.push_back({.id = "end-" + key,
                                                 .process = -1,
                                                 .status = checkers::Status::ok,
                                                 .invoke = moment,
                                                 .complete = moment + 1,
                                                 .operations = {checkers::Read{key, std::move(values)}}});
        }
    }
    judge_history(record.lists, {}, found);
    // Reads outside transactions see a moment, too, but one between two commits whose order others cannot tell: of what
    // a snapshot may show, and no more.
    checkers::History all = record.lists;
    std::ranges::copy(record.lists_read.transactions, std::back_inserter(all.transactions));
    judge_history(all, checkers::anomalies_allowed(checkers::Level::snapshot), found);
}

void judge_snapshots(Application& application, const Scale& scale, std::vector<std::string>& found) {
    for (std::uint64_t i = 0; i < scale.keys; ++i) {
        const std::string key = "s" + std::to_string(i);
        const SnapshotCheck check = application.check_snapshot<List>(key);
        if (!check.holds()) {
            found.push_back("snapshot: version " + std::to_string(check.version) + " of " + key + " has " +
                            check.stored + ", the events say " + check.folded);
        }
    }
}

/// Whoever has entered the lock later commits later; and what one leaves in several registers is in all or in none.
void judge_sections(Application& application, const Record& record, std::vector<std::string>& found) {
    std::map<std::int64_t, std::size_t> counts;
    for (const char* id : registers) {
        const std::vector<Stamped> stamps = application.load<Register>(id).state.stamps;
        for (std::size_t i = 0; i < stamps.size(); ++i) {
            const Stamped& one = stamps[i];
            ++counts[one.operation];
            if (i == 0) continue;
            const Stamped& before = stamps[i - 1];
            if (one.fence > before.fence || (one.fence == before.fence && one.section == before.section)) continue;
            found.push_back("sections overlap: in register " + std::string{id} + " " + operation(one.operation) +
                            " with fence " + std::to_string(one.fence) + " comes after " + operation(before.operation) +
                            " with fence " + std::to_string(before.fence));
        }
    }
    for (const auto& [id, command] : record.commands) {
        if (command.stamps == 0) continue;
        const std::size_t count = counts[id];
        const bool honest = command.told() == Told::committed ? count == command.stamps
                            : command.told() == Told::aborted ? count == 0
                                                              : count == 0 || count == command.stamps;
        if (!honest)
            found.push_back("Q2: " + operation(id) + " has left " + std::to_string(count) + " of " +
                            std::to_string(command.stamps) + " stamps; told: " + command.why);
    }
}

void judge_notes(Application& application, const Record& record, std::vector<std::string>& found) {
    std::map<std::string, std::size_t> counts;
    std::map<std::int64_t, std::size_t> marked;
    for (const auto& row : application.rows<Note>().all()) {
        if (++marked[row.value.mark] == 2)
            found.push_back("index: two notes have the mark " + std::to_string(row.value.mark));
        if (++counts[row.key.partition] == notes_max + 1)
            found.push_back("phantom: too many notes in " + row.key.partition);
        const auto command = record.commands.find(row.value.operation);
        if (command == record.commands.end() || command->second.told() == Told::aborted) {
            found.push_back("Q2: " + operation(row.value.operation) + " was told aborted and left a note");
        }
    }
}

void judge_indexes(Application& application, Ledger& ledger, std::vector<std::string>& found) {
    std::map<std::string, std::size_t> entries;  // by index
    for (const store::Record& record : ledger.contents({"indexes"})) {
        if (record.item.contains("data")) ++entries[record.key.partition];
    }
    const auto judge = [&](const std::string& index, std::size_t rows) {
        if (entries[index] != rows)
            found.push_back("index: " + index + " has " + std::to_string(entries[index]) + " entries for " +
                            std::to_string(rows) + " rows");
        entries.erase(index);
    };
    const auto miss = [&](const auto& row, std::string_view index) {
        found.push_back("index: " + std::string{index} + " does not find " + row.key.partition + "/" + row.key.sort);
    };
    const auto is = [](const auto& row) { return [&](const auto& other) { return other.key == row.key; }; };
    const std::vector<RowOf<Note>> notes = application.rows<Note>().all().to_vector();
    for (const RowOf<Note>& row : notes) {
        const auto marked = application.rows<Note>().find<&Note::mark>(row.value.mark);
        if (!marked || marked->key != row.key) miss(row, "notes/mark");
        const auto of = application.rows<Note>().where<&Note::operation>(row.value.operation).to_vector();
        if (std::ranges::none_of(of, is(row))) miss(row, "notes/operation");
    }
    judge("notes/mark", notes.size());
    judge("notes/operation", notes.size());
    const std::vector<RowOf<Fold>> folds = application.rows<Fold>().all().to_vector();
    for (const RowOf<Fold>& row : folds) {
        const auto of = application.rows<Fold>().where<&Fold::version>(row.value.version).to_vector();
        if (std::ranges::none_of(of, is(row))) miss(row, "folds/version");
    }
    const std::int64_t live = detail::parts_of(application).builds(Fold::kept_by).live.number;
    judge(detail::build_table(Fold::table, live) + "/version", folds.size());
    for (const store::Record& record : ledger.contents(ledger.row_tables())) {
        const bool is_of_a_build = record.key.table.starts_with(Fold::table);
        if (is_of_a_build && record.key.table != detail::build_table(Fold::table, live) && record.item.contains("data"))
            found.push_back("build: " + store::to_string(record.key) + " is left of one that was replaced");
    }
    for (const auto& [index, count] : entries)
        found.push_back("index: " + std::to_string(count) + " entries are left in " + index);
}

}  // namespace

std::vector<std::string> judge_at_rest(Application& application, Ledger& ledger, Record& record, const Scale& scale,
                                       std::int64_t moment) {
    std::vector<std::string> found;
    for (const auto& [id, command] : record.commands) {
        if (command.told() == Told::committed && !command.transaction.empty() &&
            !ledger.commits().contains(command.transaction)) {
            found.push_back("Q2: " + operation(id) + " was told committed as " + command.transaction);
        }
    }
    judge_snapshots(application, scale, found);
    const std::multiset<std::int64_t> announced = announcements(ledger);
    judge_effects(announced, record, found);
    judge_bank(application, record, scale, announced, found);
    judge_lists(application, record, scale, moment, found);
    judge_notes(application, record, found);
    judge_indexes(application, ledger, found);
    judge_sections(application, record, found);
    return found;
}

std::vector<std::string> judge_by_check(Application& application, Moment moment) {
    std::vector<std::string> found;
    const operations::CheckReport report = operations::check(application, {.fold_projections = false});
    for (const operations::Finding& one : report.findings)
        found.push_back("check: " + one.rule + " " + one.item + ": " + one.what);
    for (const std::string& why : report.not_checked) found.push_back("check: not checked: " + why);
    if (moment == Moment::any) return found;
    const auto none = [&](std::size_t count, const char* what) {
        if (count > 0) found.push_back("check: " + std::to_string(count) + what);
    };
    none(report.undecided, " claims are undecided at rest");
    none(report.to_be_settled, " claims are to be settled at rest");
    none(report.not_in_order, " slots are not in order at rest");
    return found;
}

}  // namespace varve::protocol
