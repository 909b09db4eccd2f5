#include "support/account.h"
#include "support/hooked_store.h"
#include "support/told_clock.h"

#include <varve/testing/recorded_log.h>

#include <future>
#include <thread>

#include <gtest/gtest.h>

// What runs in the background goes on, whatever a store throws.
namespace varve {
namespace {

struct Background : ::testing::Test {
    testing::RecordedLog said;
    std::promise<void> went_on;
    std::atomic<int> calls = 0;
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));

    const std::thread::id test = std::this_thread::get_id();

    void throw_first_in_the_background() {
        if (std::this_thread::get_id() == test) return;
        const int call = ++calls;
        if (call == 1) throw 42;
        if (call == 2) went_on.set_value();
    }
};

TEST_F(Background, a_sweeper_goes_on_after_what_is_no_exception) {
    store->before_read = [this] { throw_first_in_the_background(); };
    const Application bank{store, {.sweep_interval = std::chrono::milliseconds{1}, .runtime = {.log = said}}};
    said.wait_for("no std::exception");
    went_on.get_future().wait();
}

TEST_F(Background, the_heartbeats_of_locks_go_on_after_what_is_no_exception) {
    using std::chrono::milliseconds;
    store->before_write = [this](auto) { throw_first_in_the_background(); };
    ToldClock clock;
    Locks locks{store, {.time_to_live = milliseconds{8'000}}, {.clock = clock, .log = said}};
    const Lock lock = locks.acquire("a");
    for (int quarter = 0; quarter < 2; ++quarter) clock.advance_when_asleep(milliseconds{2'000});
    said.wait_for("no std::exception");
    clock.advance_when_asleep(milliseconds{500});
    went_on.get_future().wait();
    EXPECT_FALSE(lock.is_lost());
}

}  // namespace
}  // namespace varve
