#include "scratch_file.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/store_conformance_gtest.h>

#include <sqlite3.h>

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
    testing::FreshStore one{std::shared_ptr<store::ItemStore>{owned, owned->store.get()},
                            [url] { return varve::open(url); }};
    one.damage = [owned](const store::Key& key) {
        sqlite3* file = nullptr;
        sqlite3_open(owned->file.path().c_str(), &file);
        const std::string cut = "UPDATE \"" + key.table +
                                "\" SET item = substr(item, 1, length(item) - 1) WHERE id = '" + key.partition + "'";
        const bool done = sqlite3_exec(file, cut.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
        sqlite3_close(file);
        if (!done) throw std::runtime_error("the item could not be damaged: " + cut);
    };
    return one;
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
    testing::FreshStore one{std::shared_ptr<store::ItemStore>{owned, &owned->faulty}, owned->real.connect};
    one.damage = owned->real.damage;
    return one;
}

VARVE_STORE_CONFORMANCE(SqliteConformance, [] { return fresh(""); })
VARVE_STORE_CONFORMANCE(FaultySqliteConformance, fresh_behind_network)

}  // namespace
}  // namespace varve::sqlite
