#include "scratch_file.h"

#include <varve/store/open.h>
#include <varve/testing/store_conformance_gtest.h>

namespace varve::sqlite {
namespace {

/// A store whose file goes with it.
testing::FreshStore fresh() {
    struct Owned {
        ScratchFile file;
        std::shared_ptr<store::ItemStore> store;
    };
    const auto owned = std::make_shared<Owned>();
    const std::string url = owned->file.url();
    owned->store = varve::open(url);
    return {{owned, owned->store.get()}, [url] { return varve::open(url); }};
}

VARVE_STORE_CONFORMANCE(SqliteConformance, fresh)

}  // namespace
}  // namespace varve::sqlite
