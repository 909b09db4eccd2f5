#pragma once

#include <varve/testing/passing_store.h>

namespace varve {

/// Writes nothing atomically.
struct OneByOneStore final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Capabilities capabilities() const override {
        store::Capabilities less = inner().capabilities();
        less.atomic_writes_max = 0;
        return less;
    }
};

}  // namespace varve
