#include <varve/commands/row_tables.h>
#include <varve/core/error.h>
#include <varve/events/snapshot.h>
#include <varve/locks/stored_lock.h>
#include <varve/transactions/slot.h>
#include <varve/transactions/system_table.h>

#include <mutex>

namespace varve {

bool RowTables::knows(std::string_view table) const {
    const std::shared_lock lock{mutex_};
    return names_.contains(table);
}

void RowTables::add(const store::TableSchema& schema) {
    if (schema.name == transactions::events_table().name || schema.name == transactions::system_table().name ||
        schema.name == locks::locks_table().name || schema.name == events::snapshots_table().name) {
        throw InvalidError("the name '" + schema.name +
                           "' is the framework's own; call the read model's table something else");
    }
    store_.ensure_table(schema);
    const std::unique_lock lock{mutex_};
    names_.insert(schema.name);
}

std::set<std::string, std::less<>> RowTables::names() const {
    const std::shared_lock lock{mutex_};
    return names_;
}

}  // namespace varve
