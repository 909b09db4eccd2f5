#pragma once

#include "commands/index_catalogue.h"
#include "core/named_types.h"

#include <varve/rows/rows.h>
#include <varve/store/item_store.h>

#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

namespace varve::detail {

/// The tables of the read models that an application has used so far: each is ensured once.
///
/// Threads: all methods may be called from any thread.
class RowTables {
  public:
    RowTables(transactions::Coordinator& coordinator, Duration indexes_known_for)
        : store_(coordinator.store()), indexes_(coordinator, indexes_known_for) {}

    /// ConfigError if another type's rows are in this table, InvalidError for a name that the framework uses itself;
    /// what ItemStore::ensure_table throws. Takes no lock for a table that was ensured before.
    void ensure(const RowTable& table) {
        if (!types_.knows(table.type)) add(table);
    }
    std::set<std::string, std::less<>> names() const;
    /// ConfigError if this program would write rows without the entries that its indexes need.
    void check_writer(const RowTable& table, SteadyTime until);
    IndexCatalogue& indexes() { return indexes_; }

  private:
    void add(const RowTable& table);

    store::ItemStore& store_;
    IndexCatalogue indexes_;
    NamedTypes types_{"read model"};
    mutable std::shared_mutex mutex_;
    std::set<std::string, std::less<>> names_;  // guarded by mutex_
};

}  // namespace varve::detail
