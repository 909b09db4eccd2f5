#pragma once

#include <varve/store/item_store.h>

#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace varve::testing {

/// An empty store for one case, and more handles on the same data.
struct FreshStore {
    FreshStore(std::shared_ptr<store::ItemStore> s,
               std::function<std::shared_ptr<store::ItemStore>()> another_handle = {})
        : store(std::move(s)), connect(std::move(another_handle)) {}
    template <std::derived_from<store::ItemStore> Store>
    FreshStore(std::shared_ptr<Store> s) : store(std::move(s)) {}

    std::shared_ptr<store::ItemStore> store;
    /// Gives one more handle on the same data, as another process would have it; empty where no such thing exists.
    std::function<std::shared_ptr<store::ItemStore>()> connect;
    /// Damages the stored form of an item, as another program might, so that the adapter cannot read it; empty where
    /// nothing is stored that could be damaged.
    std::function<void(const store::Key&)> damage;
};
using StoreFactory = std::function<FreshStore()>;

/// One sentence of the port, as a test. `run` returns if the store keeps it, throws CaseSkipped if the sentence is
/// about something optional that the store does not have, and any other exception if it breaks it.
struct ConformanceCase {
    std::string name;
    std::function<void(const StoreFactory&)> run;
};

struct CaseSkipped : std::runtime_error {
    using runtime_error::runtime_error;
};
struct CaseFailed : std::runtime_error {
    using runtime_error::runtime_error;
};

/// The contract of store/item_store.h. An adapter that passes all cases carries varve. Needs no test framework: with
/// GoogleTest include testing/store_conformance_gtest.h, with another one write
///
///     for (const auto& one : varve::testing::store_conformance()) one.run(factory);
///
/// Cases start up to 8 threads of their own. None needs more than a few hundred round trips in a row.
std::vector<ConformanceCase> store_conformance();

}  // namespace varve::testing
