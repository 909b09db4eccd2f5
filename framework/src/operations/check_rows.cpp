#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/stream_row.h"
#include "commands/timers.h"
#include "operations/check_run.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/row.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

namespace varve::operations {

using namespace transactions;

namespace {

bool is_the_frameworks(std::string_view table) {
    for (const std::string_view own :
         {detail::Checkpoint::table, detail::ParkedRow::table, detail::Builds::table, detail::StreamRow::table,
          detail::TimerRow::table, detail::TimerBucket::table, detail::TimerAside::table}) {
        if (table == own) return true;
    }
    return table == detail::index_rows.type.name;
}

/// Whether the intent is fine and the data beneath it is not what it was laid on.
bool is_altered(const store::Record& record) try {
    store::Item without = record.item;
    if (without.erase("_was_data") == 0) return false;
    decode_row(record.key, without);
    return true;
} catch (const CorruptionError&) {
    return false;
}

void check_json(const store::Key& row, const std::optional<std::string>& text) {
    if (!text) return;
    const auto value = json::decode<json::Raw>(*text);
    if (!value) throw CorruptionError("the row " + store::to_string(row) + " is no JSON: " + value.error().message);
}

/// Counts what is there.
void look_at_row(CheckRun& run, Claims& claims, const store::Record& record, const detail::RowTable* type,
                 std::size_t& count) {
    const auto look = [&] {
        Row row = decode_row(record.key, record.item);
        if (row.intent) claims.meet({record.key, row.intent->claim, row.intent->reserved, std::nullopt});
        check_json(record.key, row.image.data);
        if (row.intent) check_json(record.key, row.intent->after);
        if (!row.image.data) return;
        ++count;
        if (type != nullptr) static_cast<void>(type->rewritten(detail::row_key(record.key), *row.image.data));
    };
    readable(run, record.key, look, is_altered(record) ? "orphan-intent" : "unreadable");
}

}  // namespace

void check_rows(CheckRun& run) {
    const std::map<std::string, CheckRun::RowsIn, std::less<>> catalogue = run.catalogue;
    Claims claims{run};
    for (const auto& [table, rows] : catalogue) {
        const bool is_own = is_the_frameworks(table);
        const bool are_entries = table == detail::index_rows.type.name;
        const detail::RowTable* const type = run.parts.row_tables.known(table);
        std::size_t none = 0;
        std::size_t& count = are_entries ? run.report.index_entries : is_own ? none : run.report.rows;
        run.each_page(table, [&, table = table](std::vector<store::Record>& page) {
            for (const store::Record& record : page) look_at_row(run, claims, record, is_own ? nullptr : type, count);
            claims.judge();
            if (are_entries) {
                check_rows_of_entries(run, page);
            } else if (is_own) {
                check_own_rows(run, table, page);
            } else {
                check_entries_of_rows(run, table, page);
                check_left_of_builds(run, table, page);
            }
        });
    }
}

}  // namespace varve::operations
