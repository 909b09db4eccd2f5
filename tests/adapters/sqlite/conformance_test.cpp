#include "scratch_file.h"

#include <varve/store/open.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::sqlite {
namespace {

/// A store whose file goes with it.
testing::FreshStore fresh(const std::string& options) {
    struct Owned {
        ScratchFile file{fast_directory()};
        std::shared_ptr<store::ItemStore> store;
    };
    const auto owned = std::make_shared<Owned>();
    const std::string url = owned->file.url() + options;
    owned->store = varve::open(url);
    return {std::shared_ptr<store::ItemStore>{owned, owned->store.get()}, [url] { return varve::open(url); }};
}

/// The same behind a network without faults.
testing::FreshStore fresh_behind_network() {
    struct Owned {
        testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
        testing::SeededRandom random{1};
        testing::Network network{{clock, random}};
        testing::FreshStore real = fresh("?synchronous=normal");
        testing::FaultyStore faulty{real.store, network};
    };
    const auto owned = std::make_shared<Owned>();
    return {std::shared_ptr<store::ItemStore>{owned, &owned->faulty}, owned->real.connect};
}

VARVE_STORE_CONFORMANCE(SqliteConformance, [] { return fresh(""); })
VARVE_STORE_CONFORMANCE(FaultySqliteConformance, fresh_behind_network)

}  // namespace
}  // namespace varve::sqlite
