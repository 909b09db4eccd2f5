#pragma once

#include <varve/core/named_types.h>
#include <varve/store/item_store.h>

#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

namespace varve {

/// The tables of the read models that an application has used so far: each is ensured once.
///
/// Threads: all methods may be called from any thread.
class RowTables {
  public:
    explicit RowTables(store::ItemStore& store) : store_(store) {}

    bool knows(const NamedType& row) const { return types_.knows(row); }
    /// `row`, named by its table. ConfigError if another type's rows are in this table, InvalidError for a name that the
    /// framework uses itself; what ItemStore::ensure_table throws.
    void add(const NamedType& row, const store::TableSchema& schema);
    std::set<std::string, std::less<>> names() const;

  private:
    store::ItemStore& store_;
    NamedTypes types_{"read model"};
    mutable std::shared_mutex mutex_;
    std::set<std::string, std::less<>> names_;  // guarded by mutex_
};

}  // namespace varve
