#include <varve/commands/row_tables.h>
#include <varve/core/error.h>
#include <varve/events/snapshot.h>
#include <varve/locks/stored_lock.h>
#include <varve/transactions/slot.h>
#include <varve/transactions/system_table.h>

#include <mutex>

namespace varve {

void RowTables::add(const NamedType& row, const store::TableSchema& schema) {
    if (schema.name == transactions::events_table().name || schema.name == transactions::system_table().name ||
        schema.name == locks::locks_table().name || schema.name == events::snapshots_table().name) {
        throw InvalidError("the name '" + schema.name +
                           "' is the framework's own; call the read model's table something else");
    }
    types_.refuse_another(row);
    store_.ensure_table(schema);
    {
        const std::unique_lock lock{mutex_};
        names_.insert(schema.name);
    }
    types_.add(row);
}

std::set<std::string, std::less<>> RowTables::names() const {
    const std::shared_lock lock{mutex_};
    return names_;
}

}  // namespace varve
