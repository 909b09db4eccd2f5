// The crash grid on servers of DynamoDB's protocol: up to three participants, every request at least once.

#include "../local_server.h"
#include "protocol/crash_grid.h"

#include <varve/store/open.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

/// New tables now and then: making them costs as much as some runs, and a sweep scans all there is.
class ServerStores final : public protocol::Stores {
  public:
    explicit ServerStores(LocalServer::Kind kind) : server_(kind) {}
    std::shared_ptr<store::ItemStore> next() override {
        if (used_++ % 6 == 0) store_ = varve::open(server_.url("grid" + std::to_string(used_)));
        return store_;
    }

  private:
    LocalServer server_;
    std::shared_ptr<store::ItemStore> store_;
    unsigned used_ = 0;
};

class CrashGrid : public ::testing::TestWithParam<LocalServer::Kind> {};

INSTANTIATE_TEST_SUITE_P(Each, CrashGrid, ::testing::Values(LocalServer::Kind::dynoxide, LocalServer::Kind::dynalite),
                         [](const ::testing::TestParamInfo<LocalServer::Kind>& info) {
                             return info.param == LocalServer::Kind::dynoxide ? "dynoxide" : "dynalite";
                         });

TEST_P(CrashGrid, all_or_nothing_whoever_ends_at_whatever_request) {
    std::unique_ptr<ServerStores> stores;
    try {
        stores = std::make_unique<ServerStores>(GetParam());
    } catch (const ServerMissing& missing) {
        GTEST_SKIP() << missing.what();
    }
    protocol::Counts counts;
    for (const protocol::Scenario& scenario : protocol::scenarios()) {
        if (scenario.kinds.size() > 3) continue;
        run_crash_grid(scenario, *stores, protocol::Extent::each_point, counts);
    }
    print(GetParam() == LocalServer::Kind::dynoxide ? "dynoxide" : "dynalite", counts);
    EXPECT_GE(counts.points, 200u);
    EXPECT_GT(counts.committed, counts.runs / 10);
    EXPECT_GT(counts.aborted, counts.runs / 10);
}

}  // namespace
}  // namespace varve::dynamodb
