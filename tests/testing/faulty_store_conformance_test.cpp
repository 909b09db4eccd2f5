#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::testing {
namespace {

/// A FaultyStore around a new memory store, with all that it needs.
struct Bundle {
    Bundle(const FaultRates& rates, const Disguise& disguise)
        : network({clock, random}, rates), faulty(memory::open(), network, disguise) {}

    ManualClock clock{ManualClock::Mode::auto_advance};
    SeededRandom random{1};
    Network network;
    FaultyStore faulty;
};

FreshStore around_memory(const FaultRates& rates, const Disguise& disguise = {}) {
    const auto bundle = std::make_shared<Bundle>(rates, disguise);
    return {std::shared_ptr<store::ItemStore>(bundle, &bundle->faulty)};
}

}  // namespace
}  // namespace varve::testing

VARVE_STORE_CONFORMANCE(FaultyStoreWithoutFaults, [] { return varve::testing::around_memory({}); })

VARVE_STORE_CONFORMANCE(FaultyStoreWithSmallPages, [] { return varve::testing::around_memory({.small_page = 1}); })

VARVE_STORE_CONFORMANCE(FaultyStoreInDisguise, [] {
    return varve::testing::around_memory({}, {.item_bytes_max = 20'000, .atomic_writes_max = 0, .no_changes = true});
})

VARVE_STORE_CONFORMANCE(FaultyStoreOfFewWritesAtOnce,
                        [] { return varve::testing::around_memory({}, {.atomic_writes_max = 4}); })
