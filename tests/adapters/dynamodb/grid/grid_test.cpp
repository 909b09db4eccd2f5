// The crash grid on servers of DynamoDB's protocol.

#include "../each_server.h"
#include "adapters/on_servers/fresh_stores.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

class CrashGrid : public EachServer {};

INSTANTIATE_TEST_SUITE_P(Each, CrashGrid, each_kind(), name_of_kind);

TEST_P(CrashGrid, all_or_nothing_whoever_ends_at_whatever_request) {
    on_servers::FreshStores stores{
        [&](unsigned number) { return varve::open(server_->url("grid" + std::to_string(number))); }};
    on_servers::run_crash_grid_on(stores, to_string(GetParam()).c_str());
}

}  // namespace
}  // namespace varve::dynamodb
