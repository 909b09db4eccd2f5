#include "protocol/crash_grid.h"

#include "support/temporary_folder.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/seeded_random.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace varve::protocol {

void PrintTo(const Scenario& scenario, std::ostream* out) {
    *out << scenario.name;
}

namespace {

class MemoryStores final : public Stores {
  public:
    std::shared_ptr<store::ItemStore> next() override { return open("memory:"); }
};

/// Say that they keep no order of changes.
class DisguisedStores final : public Stores {
  public:
    std::shared_ptr<store::ItemStore> next() override {
        return std::make_shared<testing::FaultyStore>(open("memory:"), network_, testing::Disguise{.no_changes = true});
    }

  private:
    testing::ManualClock clock_{testing::ManualClock::Mode::auto_advance};
    testing::SeededRandom random_{1};
    testing::Network network_{{clock_, random_}};
};

/// Makes a new file now and then: opening one costs more than a run.
class SqliteStores final : public Stores {
  public:
    std::shared_ptr<store::ItemStore> next() override {
        if (used_++ % 20 == 0) {
            store_.reset();
            folder_.emplace("grid");
            store_ = open("sqlite:" + (folder_->path() / "grid.db").string() + "?synchronous=normal");
        }
        return store_;
    }

  private:
    std::optional<TemporaryFolder> folder_;
    std::shared_ptr<store::ItemStore> store_;
    unsigned used_ = 0;
};

struct CrashGridOf : ::testing::TestWithParam<Scenario> {
    static void expect_not_empty(const Counts& counts) {
        EXPECT_GT(counts.runs, 50u);
        const auto writes = [](Kind kind) { return kind < Kind::read_head; };
        if (!std::ranges::any_of(GetParam().kinds, writes)) return;
        EXPECT_GT(counts.committed, counts.runs / 20);
    }
};

TEST_P(CrashGridOf, is_all_or_nothing_whoever_ends_at_whatever_request_in_memory) {
    MemoryStores stores;
    Counts counts;
    run_crash_grid(GetParam(), stores, Extent::everything, counts);
    print("memory", counts);
    expect_not_empty(counts);
}

TEST_P(CrashGridOf, is_all_or_nothing_where_only_a_scan_finds_what_the_dead_left) {
    DisguisedStores stores;
    Counts counts;
    run_crash_grid(GetParam(), stores, Extent::sweeping, counts);
    print("memory without an order of changes", counts);
    expect_not_empty(counts);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, CrashGridOf, ::testing::ValuesIn(scenarios()));

TEST(CrashGrid, all_or_nothing_whoever_ends_at_whatever_request_on_sqlite) {
    SqliteStores stores;
    Counts counts;
    for (const Scenario& scenario : scenarios()) {
        if (scenario.kinds.size() > 2) continue;
        run_crash_grid(scenario, stores, Extent::what_differs_most, counts);
        if (HasFailure()) break;
    }
    print("SQLite", counts);
    EXPECT_GT(counts.runs, 1'000u);
    EXPECT_GT(counts.committed, counts.runs / 10);
}

}  // namespace
}  // namespace varve::protocol
