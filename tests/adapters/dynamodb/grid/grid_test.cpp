// The crash grid on servers of DynamoDB's protocol: up to three participants, every request at least once.

#include "../each_server.h"
#include "protocol/crash_grid.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

/// New tables now and then: making them costs as much as some runs, and a sweep scans all there is.
class ServerStores final : public protocol::Stores {
  public:
    explicit ServerStores(const LocalServer& server) : server_(server) {}
    std::shared_ptr<store::ItemStore> next() override {
        if (used_++ % 6 == 0) store_ = varve::open(server_.url("grid" + std::to_string(used_)));
        return store_;
    }

  private:
    const LocalServer& server_;
    std::shared_ptr<store::ItemStore> store_;
    unsigned used_ = 0;
};

class CrashGrid : public EachServer {};

INSTANTIATE_TEST_SUITE_P(Each, CrashGrid, each_kind(), name_of_kind);

TEST_P(CrashGrid, all_or_nothing_whoever_ends_at_whatever_request) {
    ServerStores stores{*server_};
    protocol::Counts counts;
    for (const protocol::Scenario& scenario : protocol::scenarios()) {
        if (scenario.kinds.size() > 3) continue;
        run_crash_grid(scenario, stores, protocol::Extent::each_point, counts);
    }
    print(to_string(GetParam()), counts);
    EXPECT_GE(counts.points, 200u);
    EXPECT_GT(counts.committed, counts.runs / 10);
    EXPECT_GT(counts.aborted, counts.runs / 10);
}

}  // namespace
}  // namespace varve::dynamodb
