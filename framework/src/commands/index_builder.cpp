#include "commands/index_builder.h"

#include "commands/application_parts.h"
#include "rows/index_entries.h"

#include <varve/core/error.h>

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

bool declares(const RowTable& table, const std::string& field) {
    return std::ranges::find(table.indexes.fields, field, &IndexedField::name) != table.indexes.fields.end();
}

}  // namespace

IndexBuilder::IndexBuilder(Application& application, const RowTable& table)
    : application_(application), parts_(parts_of(application)), table_(table) {
    parts_.ensure(table_);
    parts_.ensure(index_rows);
}

std::size_t IndexBuilder::build(OldPrograms old) {
    if (announce() && old == OldPrograms::may_run)
        application_.runtime().clock.get().sleep_for(parts_.options.transactions.retention);

    std::size_t differed = add_missing();
    for (std::size_t i = 0; i < table_.indexes.fields.size(); ++i) {
        differed += erase_from(std::string{table_.indexes.fields[i].name},
                               [&](Workspace& work, const RowKey& entry) { work.erase_if_stale(table_, i, entry); });
    }
    std::vector<std::string> dropped;
    parts_.row_tables.indexes().change(table_, [&](IndexCatalogue::States& states) {
        dropped.clear();
        for (const auto& [field, state] : states) {
            if (!declares(table_, field)) dropped.push_back(field);
        }
        for (const std::string& field : dropped) states.erase(field);
        for (const IndexedField& field : table_.indexes.fields)
            states[std::string{field.name}] = {.form = form_of_index(field), .whole = true};
    });
    for (const std::string& field : dropped)
        differed += erase_from(field, [](Workspace& work, const RowKey& entry) { work.erase_entry(entry); });
    return differed;
}

bool IndexBuilder::announce() {
    bool changes = false;
    parts_.row_tables.indexes().change(table_, [&](IndexCatalogue::States& states) {
        changes = false;
        for (const IndexedField& field : table_.indexes.fields) {
            const std::string form = form_of_index(field);
            IndexCatalogue::State& state = states[std::string{field.name}];
            if (state.form != form) state = {.form = form, .whole = false};
            changes = changes || !state.whole;
        }
        for (auto& [field, state] : states) {
            if (declares(table_, field)) continue;
            state.whole = false;
            changes = true;
        }
    });
    return changes;
}

std::size_t IndexBuilder::changed(const std::function<void(Workspace&)>& body) {
    std::size_t changed = 0;
    const Outcome outcome = application_.transact([&](Transaction& tx) {
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
                  added += changed([&](Workspace& work) {
                      for (const StoredRow& row : rows) work.reindex(table_, row.key);
                  });
              });
    return added;
}

std::size_t IndexBuilder::erase_from(const std::string& field,
                                     const std::function<void(Workspace&, const RowKey&)>& erase) {
    std::size_t erased = 0;
    const RowRange entries{.partition = std::string{table_.type.name} + "/" + field};
    each_page([&](const PageOptions& page) { return parts_.range(index_rows, entries, page, Isolation::committed); },
              [&](const std::vector<StoredRow>& rows) {
                  erased += changed([&](Workspace& work) {
                      for (const StoredRow& row : rows) erase(work, row.key);
                  });
              });
    return erased;
}

}  // namespace varve::detail
