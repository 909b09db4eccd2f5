#include "commands/index_builder.h"

#include "commands/application_parts.h"
#include "rows/index_entries.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace varve::detail {

using namespace transactions;

namespace {

constexpr std::size_t rows_at_once = 50;

/// Each page of a list, until it ends.
void each_page(const std::function<StoredPage(const PageOptions&)>& read,
               const std::function<void(const std::vector<StoredRow>&)>& take) {
    PageOptions options{.limit = rows_at_once};
    do {
        StoredPage page = read(options);
        if (!page.rows.empty()) take(page.rows);
        options.next = std::move(page.next);
    } while (!options.next.empty());
}

/// The rows that are read now.
const RowTable& ensured(ApplicationParts& parts, const RowTable& table) {
    parts.ensure(table);
    return parts.live_build(table);
}

bool is_dropped(const IndexCatalogue::State& state) {
    return state.form == IndexCatalogue::dropped;
}

}  // namespace

IndexBuilder::IndexBuilder(Application& application, const RowTable& table)
    : application_(application), parts_(parts_of(application)), table_(ensured(parts_, table)) {
    parts_.ensure(index_rows);
}

std::size_t IndexBuilder::build(OldPrograms old) {
    parts_.runner.check("build_indexes", {});
    if (announce() && old == OldPrograms::may_run)
        application_.runtime().clock.get().sleep_for(parts_.options.transactions.retention);

    std::size_t differed = add_missing();
    for (std::size_t i = 0; i < table_.indexes.fields.size(); ++i) {
        differed += erase_from(std::string{table_.indexes.fields[i].name},
                               [&](Workspace& work, const auto& entries) { work.erase_stale(table_, i, entries); });
    }
    for (const auto& [field, state] : announced_) {
        if (is_dropped(state))
            differed += erase_from(field, [](Workspace& work, const auto& entries) { work.erase_entries(entries); });
    }
    set_built();
    return differed;
}

bool IndexBuilder::announce() {
    const std::string build = uuid7(application_.runtime());
    bool changes = false;
    parts_.row_tables.indexes().change(table_, [&](IndexCatalogue::States& states) {
        IndexCatalogue::States wanted;
        for (const auto& [field, state] : states)
            wanted[field] = {.form = std::string{IndexCatalogue::dropped}, .whole = false, .build = build};
        for (const IndexedField& field : table_.indexes.fields)
            wanted[std::string{field.name}] = {.form = form_of_index(field), .whole = false, .build = build};
        changes = false;
        for (auto& [field, state] : wanted) {
            const auto found = states.find(field);
            if (found != states.end() && found->second.form == state.form) state = found->second;
            changes = changes || !state.whole;
        }
        states = announced_ = std::move(wanted);
    });
    return changes;
}

void IndexBuilder::check_announced(const IndexCatalogue::States& states) const {
    const auto is_as_announced = [&](const std::string& field, const IndexCatalogue::State& state) {
        const auto found = states.find(field);
        if (found == states.end()) return is_dropped(state);  // somebody else has ended that
        return found->second.form == state.form && found->second.build == state.build;
    };
    const bool all =
        std::ranges::all_of(announced_, [&](const auto& one) { return is_as_announced(one.first, one.second); });
    const auto is_known = [&](const auto& one) { return announced_.contains(one.first); };
    if (all && std::ranges::all_of(states, is_known)) return;
    throw ConfigError(
        "the indexes of '" + std::string{table_.type.name} +
        "' are not built: meanwhile a program with "
        "another struct than " +
        std::string{table_.type.cpp_name} +
        " has begun to make them its own. Call build_indexes again in the program whose struct is to stay");
}

void IndexBuilder::set_built() {
    parts_.row_tables.indexes().change(table_, [&](IndexCatalogue::States& states) {
        check_announced(states);
        std::erase_if(states, [](const auto& one) { return is_dropped(one.second); });
        for (auto& [field, state] : states) state.whole = true;
    });
}

std::size_t IndexBuilder::changed(const std::function<void(Workspace&)>& body) {
    std::size_t changed = 0;
    const Outcome outcome = own_transaction(application_, [&](Transaction& tx) {
        check_announced(parts_.row_tables.indexes().read(table_));
        Workspace& work = Workspace::of(tx);
        body(work);
        work.keep_indexes();
        changed = work.entries_changed();
    });
    if (!outcome) {
        throw ConfigError("the indexes of '" + std::string{table_.type.name} + "' cannot be built: " +
                          outcome.error().message + "; change one of the rows, or declare Index in place of Unique");
    }
    return changed;
}

std::size_t IndexBuilder::add_missing() {
    std::size_t added = 0;
    if (table_.indexes.fields.empty()) return added;
    each_page([&](const PageOptions& page) { return parts_.all(table_, page, Isolation::committed); },
              [&](const std::vector<StoredRow>& rows) {
                  added += changed([&](Workspace& work) { work.reindex(table_, rows); });
              });
    return added;
}

std::size_t IndexBuilder::erase_from(const std::string& field,
                                     const std::function<void(Workspace&, const std::vector<StoredRow>&)>& erase) {
    std::size_t erased = 0;
    const RowRange entries{.partition = std::string{table_.type.name} + "/" + field};
    each_page(
        [&](const PageOptions& page) { return parts_.range(index_rows, entries, page, Isolation::committed); },
        [&](const std::vector<StoredRow>& rows) { erased += changed([&](Workspace& work) { erase(work, rows); }); });
    return erased;
}

}  // namespace varve::detail
