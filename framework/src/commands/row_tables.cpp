#include "commands/row_tables.h"

#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/stream_row.h"
#include "commands/timers.h"
#include "events/snapshot.h"
#include "feed/log.h"
#include "locks/stored_lock.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/core/error.h>

#include <algorithm>
#include <exception>

namespace varve::detail {
namespace {

/// What keeps its rows here is of this version of the framework, and has no indexes.
const RowTable* const frameworks[] = {&row_table<Checkpoint>,  &row_table<Builds>,    &row_table<ParkedRow>,
                                      &row_table<StreamRow>,   &index_rows,           &row_table<TimerRow>,
                                      &row_table<TimerBucket>, &row_table<TimerAside>};

bool is_the_frameworks(const RowTable& table) {
    return std::ranges::any_of(frameworks, [&](const RowTable* one) { return one->type.type == table.type.type; });
}

bool has_the_frameworks_name(const RowTable& table) {
    const std::string_view name = table.type.name;
    return name == transactions::events_table().name || name == transactions::system_table().name ||
           name == locks::locks_table().name || feed::is_log_table(name) || name == events::snapshots_table().name ||
           std::ranges::any_of(frameworks, [&](const RowTable* one) { return one->type.name == name; });
}

}  // namespace

RowTables::TableOfBuild::TableOfBuild(const RowTable& of, std::int64_t number)
    : name(build_table(of.type.name, number)),
      table{.type = {.name = name, .cpp_name = of.type.cpp_name, .type = of.type.type},
            .sorted = of.sorted,
            .rewritten = of.rewritten,
            .indexes = of.indexes,
            .kept_by = {}} {}

const RowTable& RowTables::of_build(const RowTable& table, std::int64_t number) {
    if (number == 1) return table;
    const std::pair name{table.type.name, number};
    {
        const SharedLock lock{mutex_};
        const auto found = of_builds_.find(name);
        if (found != of_builds_.end() && types_.knows(found->second.table.type)) return found->second.table;
    }
    const RowTable* made = nullptr;
    {
        const ExclusiveLock lock{mutex_};
        made = &of_builds_.try_emplace(name, table, number).first->second.table;
    }
    add(*made, Whose::a_build);
    return *made;
}

void RowTables::add(const RowTable& table, Whose whose) {
    const store::TableSchema schema = schema_of(table);
    const bool is_misnamed = whose == Whose::the_users && is_name_of_build_table(schema.name);
    if (is_misnamed || (has_the_frameworks_name(table) && !is_the_frameworks(table))) {
        throw InvalidError("the name '" + schema.name +
                           "' is the framework's own; call the read model's table something else");
    }
    types_.refuse_another(table.type);
    store_.ensure_table(schema);
    const bool is_met = indexes_.meet(table);
    if (!table.indexes.fields.empty()) ensure(index_rows);
    if (!table.kept_by.empty()) ensure(row_table<Builds>);
    {
        const ExclusiveLock lock{mutex_};
        names_.insert(schema.name);
        known_.insert_or_assign(table.type.name, &table);
    }
    if (is_met) types_.add(table.type);  // else whoever uses it next tries again: the store may take writes by then
}

void RowTables::check_writer(const RowTable& table, SteadyTime until) {
    if (!is_the_frameworks(table)) indexes_.check_writer(table, until);
}

std::set<std::string, std::less<>> RowTables::names() const {
    const SharedLock lock{mutex_};
    return names_;
}

const RowTable* RowTables::known(std::string_view name) const {
    const SharedLock lock{mutex_};
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : found->second;
}

std::set<std::string, std::less<>> RowTables::names_in_store() {
    std::exception_ptr failed;
    for (const store::TableSchema& schema : tables_of_rows(store_)) {
        if (names().contains(schema.name)) continue;
        try {
            store_.ensure_table(schema);
        } catch (const Error&) {
            if (!failed) failed = std::current_exception();
            continue;
        }
        const ExclusiveLock lock{mutex_};
        names_.insert(schema.name);
    }
    if (failed) std::rethrow_exception(failed);
    return names();
}

}  // namespace varve::detail
