#include "adapters/sqlite/scratch_file.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

/// Real threads and clocks, with heartbeats of their own.
namespace varve {
namespace {

using namespace std::chrono_literals;

class RealThreads : public ::testing::TestWithParam<const char*> {
  protected:
    /// What a process has: on SQLite a store of its own.
    std::shared_ptr<store::ItemStore> process() {
        return std::string_view{GetParam()} == "sqlite" ? open(file_.url() + "?busy_timeout_ms=60000") : memory_;
    }

  private:
    sqlite::ScratchFile file_;
    std::shared_ptr<store::ItemStore> memory_ = open("memory:");
};

TEST_P(RealThreads, enter_one_lock_one_at_a_time_with_growing_fences) {
    constexpr int objects = 2, threads_each = 3, turns = 4;
    std::atomic<int> inside = 0;
    std::atomic<locks::Fence> last = 0;
    std::atomic<int> entered = 0;
    std::vector<std::unique_ptr<Locks>> processes;
    for (int i = 0; i < objects; ++i) processes.push_back(std::make_unique<Locks>(process()));
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < objects * threads_each; ++i) {
            threads.emplace_back([&, i] {
                for (int turn = 0; turn < turns; ++turn) {
                    const Lock lock = processes[i % objects]->acquire("a", {.wait = Locks::for_ever});
                    EXPECT_EQ(++inside, 1);
                    EXPECT_GT(lock.fence(), last.exchange(lock.fence()));
                    ++entered;
                    --inside;
                }
            });
        }
    }
    EXPECT_EQ(entered, objects * threads_each * turns);
    EXPECT_EQ(last, entered);
    EXPECT_TRUE(processes.front()->inspect("a").queue.empty());
}

TEST_P(RealThreads, that_want_the_same_locks_in_opposite_orders_all_get_them) {
    std::vector<std::unique_ptr<Locks>> processes;
    for (int i = 0; i < 2; ++i) processes.push_back(std::make_unique<Locks>(process()));
    std::atomic<int> done = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                for (int turn = 0; turn < 3; ++turn) {
                    const std::vector<std::string> names =
                        i % 2 == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b", "a"};
                    done += static_cast<int>(processes[static_cast<std::size_t>(i) % 2]
                                                 ->acquire_all(names, {.wait = Locks::for_ever})
                                                 .size());
                }
            });
        }
    }
    EXPECT_EQ(done, 4 * 3 * 2);
}

INSTANTIATE_TEST_SUITE_P(Stores, RealThreads, ::testing::Values("memory", "sqlite"),
                         [](const auto& info) { return std::string{info.param}; });

}  // namespace
}  // namespace varve
