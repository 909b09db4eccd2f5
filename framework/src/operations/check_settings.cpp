#include "events/snapshot.h"
#include "feed/log.h"
#include "locks/stored_lock.h"
#include "operations/check_run.h"
#include "operations/target.h"
#include "rows/stored_rows.h"
#include "transactions/attributes.h"
#include "transactions/bell.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <limits>

namespace varve::operations {

using namespace transactions;

namespace {

/// The table of a name such as "sweeper/events"; empty: it is none.
std::string table_of_place(const std::string& name) {
    for (const std::string_view prefix : {std::string_view{"sweeper/"}, std::string_view{"collector/"}}) {
        if (name.starts_with(prefix)) return name.substr(prefix.size());
    }
    return {};
}

void look_at_place(CheckRun& run, const store::Record& record, const std::string& table) {
    const std::int64_t* const position =
        integer_of(record.key, record.item, "position", {0, std::numeric_limits<std::int64_t>::max()});
    if (position == nullptr) throw_damaged(record.key, "has no position");
    if (!run.store.capabilities().ordered_changes || !run.knows(table)) return;
    const auto end = static_cast<std::int64_t>(run.store.last_change(table));
    if (*position <= end) return;
    run.find("setting", record.key,
             "it is at " + std::to_string(*position) + ", and the changes of the table end at " + std::to_string(end) +
                 ": what changes up to there will not be looked at");
}

}  // namespace

CheckRun::RowsIn CheckRun::rows_in(const store::Record& record) {
    const std::int64_t* const sorted = integer_of(record.key, record.item, "sorted", {0, 1});
    const std::string* const indexes = text_of(record.key, record.item, "indexes");
    if (sorted == nullptr || indexes == nullptr) throw_damaged(record.key, "does not say how its table keeps rows");
    auto states = json::decode<detail::IndexCatalogue::States>(*indexes);
    if (!states) throw_damaged(record.key, "has unreadable indexes (" + states.error().message + ")");
    return {.sorted = *sorted == 1, .indexes = *std::move(states)};
}

void CheckRun::learn(const std::string& table) try {
    const store::Key key = rows_key(table);
    std::optional<store::Item> said = item(key);
    if (!said) return;
    RowsIn rows = rows_in({key, *std::move(said)});
    know(detail::schema_of_rows(table, rows.sorted));
    catalogue.insert_or_assign(table, std::move(rows));
} catch (const CorruptionError&) {  // found where it is met
} catch (const InvalidError&) {     // no name of a table
}

void check_settings(CheckRun& run) {
    for (const store::TableSchema* schema :
         {&system_table(), &events_table(), &locks::locks_table(), &events::snapshots_table()})
        run.know(*schema);
    const store::Key format{system_table().name, "format"};
    const std::optional<store::Item> said = run.item(format);
    const std::int64_t* const version = said ? store::integer(*said, "varve_format") : nullptr;
    if (version == nullptr || *version != format_version)
        run.find("format", format, "it does not say that the store is in format " + std::to_string(format_version));

    std::vector<store::Record> places;
    run.each_page(system_table().name, [&](std::vector<store::Record>& page) {
        for (store::Record& record : page) {
            const std::string& name = record.key.partition;
            const auto look = [&] {
                if (name.starts_with(rows_prefix)) {
                    const std::string table = name.substr(rows_prefix.size());
                    CheckRun::RowsIn rows = CheckRun::rows_in(record);
                    run.know(detail::schema_of_rows(table, rows.sorted));
                    run.catalogue.insert_or_assign(table, std::move(rows));
                } else if (name == feed_setting_key().partition) {
                    static_cast<void>(decode_bell_shards(record.item));
                } else if (name == "import") {
                    static_cast<void>(decode_mark(record));
                } else if (!table_of_place(name).empty()) {
                    places.push_back(std::move(record));
                } else if (name != format.partition) {
                    throw_damaged(record.key, "has a name that this version does not know");
                }
            };
            readable(run, store::Key{record.key}, look);
        }
    });
    for (const store::Record& place : places)
        readable(run, place.key, [&] { look_at_place(run, place, table_of_place(place.key.partition)); });
    // Of rows that this program uses and the table `varve` has forgotten, nobody settles what dead ones have left.
    for (const std::string& table : run.parts.row_tables.names()) {
        const store::Key key = rows_key(table);
        if (!run.catalogue.contains(table) && !run.item(key))
            run.find("setting", key, "this program keeps rows in the table, and the item that says so is not there");
    }
}

}  // namespace varve::operations
