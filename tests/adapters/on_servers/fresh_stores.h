#pragma once

#include "protocol/crash_grid.h"

#include <varve/store/item_store.h>

#include <functional>
#include <memory>
#include <utility>

namespace varve::on_servers {

/// New tables now and then: making them costs as much as some runs, and a sweep scans all there is.
class FreshStores final : public protocol::Stores {
  public:
    /// `open` is given a number that none before had.
    explicit FreshStores(std::function<std::shared_ptr<store::ItemStore>(unsigned number)> open)
        : open_(std::move(open)) {}
    std::shared_ptr<store::ItemStore> next() override {
        if (used_++ % 6 == 0) store_ = open_(used_);
        return store_;
    }

  private:
    const std::function<std::shared_ptr<store::ItemStore>(unsigned number)> open_;
    std::shared_ptr<store::ItemStore> store_;
    unsigned used_ = 0;
};

/// Up to three participants, every request at least once.
inline void run_crash_grid_on(FreshStores& stores, const char* name) {
    protocol::Counts counts;
    for (const protocol::Scenario& scenario : protocol::scenarios()) {
        if (scenario.kinds.size() > 3) continue;
        run_crash_grid(scenario, stores, protocol::Extent::each_point, counts);
    }
    print(name, counts);
    EXPECT_GE(counts.points, 200u);
    EXPECT_GT(counts.committed, counts.runs / 10);
    EXPECT_GT(counts.aborted, counts.runs / 10);
}

}  // namespace varve::on_servers
