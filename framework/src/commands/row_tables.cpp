#include "commands/row_tables.h"

#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "events/snapshot.h"
#include "feed/log.h"
#include "locks/stored_lock.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>

#include <mutex>

namespace varve::detail {
namespace {

/// What keeps its rows here is of this version of the framework, and has no indexes.
bool is_the_frameworks(const RowTable& table) {
    return table.type.type == typeid(Checkpoint) || table.type.type == typeid(ParkedRow) ||
           table.type.type == index_rows.type.type;
}

}  // namespace

void RowTables::add(const RowTable& table) {
    const store::TableSchema schema = schema_of(table);
    if (schema.name == transactions::events_table().name || schema.name == transactions::system_table().name ||
        schema.name == locks::locks_table().name || feed::is_log_table(schema.name) ||
        schema.name == events::snapshots_table().name ||
        (schema.name == Checkpoint::table && table.type.type != typeid(Checkpoint)) ||
        (schema.name == ParkedRow::table && table.type.type != typeid(ParkedRow)) ||
        (schema.name == index_rows.type.name && table.type.type != index_rows.type.type)) {
        throw InvalidError("the name '" + schema.name +
                           "' is the framework's own; call the read model's table something else");
    }
    types_.refuse_another(table.type);
    store_.ensure_table(schema);
    if (!is_the_frameworks(table)) indexes_.meet(table);
    if (!table.indexes.fields.empty()) ensure(index_rows);
    {
        const std::unique_lock lock{mutex_};
        names_.insert(schema.name);
    }
    types_.add(table.type);
}

void RowTables::check_writer(const RowTable& table) {
    if (!is_the_frameworks(table)) indexes_.check_writer(table);
}

std::set<std::string, std::less<>> RowTables::names() const {
    const std::shared_lock lock{mutex_};
    return names_;
}

}  // namespace varve::detail
