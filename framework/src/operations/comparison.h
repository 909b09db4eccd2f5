#pragma once

#include <varve/core/runtime.h>
#include <varve/operations/copy.h>
#include <varve/store/item_store.h>

#include <vector>

namespace varve::operations {

/// Compares a store that was filled with the one that it was filled from, item by item, both as they stand now.
///
/// Threads: one at a time. Errors: those of the stores; as Source.
class Comparison {
  public:
    Comparison(store::ItemStore& from, store::ItemStore& to, Runtime runtime)
        : from_(from), to_(to), runtime_(runtime) {}

    /// Leaves tombstones in place of rows that are only in the new store: an earlier attempt has brought what the old
    /// one has deleted since. A late copy of that attempt's writes finds them.
    void remove_others();
    /// The first hundred.
    std::vector<Difference> differences();

  private:
    void compare_slots();
    void compare_rest();
    void count_slots();
    /// Calls `take` with each row that is in the new store and not in the old one.
    void others(const std::function<void(const store::Record&)>& take);
    void add(const store::Key& key, const store::Item* from, const store::Item* to);
    bool is_full() const;

    store::ItemStore& from_;
    store::ItemStore& to_;
    const Runtime runtime_;
    std::uint64_t slots_ = 0;  // of both kinds, in the old one
    std::vector<Difference> found_;
};

}  // namespace varve::operations
