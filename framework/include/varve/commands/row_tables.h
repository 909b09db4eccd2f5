#pragma once

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

    bool knows(std::string_view table) const;
    /// Throws what ItemStore::ensure_table throws, and InvalidError for a name that the framework uses itself.
    void add(const store::TableSchema& schema);
    std::set<std::string, std::less<>> names() const;

  private:
    store::ItemStore& store_;
    mutable std::shared_mutex mutex_;
    std::set<std::string, std::less<>> names_;  // guarded by mutex_
};

}  // namespace varve
