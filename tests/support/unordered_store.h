#pragma once

#include <varve/testing/passing_store.h>

namespace varve {

/// Keeps no order of changes.
class UnorderedStore final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;
    store::Capabilities capabilities() const override {
        store::Capabilities less = inner().capabilities();
        less.ordered_changes = false;
        return less;
    }
};

}  // namespace varve
