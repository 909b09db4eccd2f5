#include "each_server.h"
#include "support/account.h"

#include <varve/core/error.h>
#include <varve/dynamodb/dynamodb.h>
#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

using namespace std::chrono_literals;
using namespace account;
using testing::ManualClock;

class LocksOnServers : public EachServer {
  protected:
    std::shared_ptr<store::ItemStore> process() {
        return dynamodb::open({.host = server_->address(), .prefix = "locks", .runtime = {.clock = clock_}});
    }

    ManualClock clock_{ManualClock::Mode::auto_advance};
};

TEST_P(LocksOnServers, are_taken_in_order_kept_lost_and_fenced) {
    Application bank{process(), {.sweep = false, .locks = {.heartbeat_thread = false}, .runtime = {.clock = clock_}}};
    Locks others{process(), {.heartbeat_thread = false}, {.clock = clock_}};

    const Lock lock = bank.locks().acquire("month-end");
    EXPECT_FALSE(others.try_acquire("month-end", {.wait = 0s}));
    EXPECT_FALSE(others.try_acquire("month-end", {.wait = 500ms}));
    EXPECT_EQ(others.inspect("month-end").queue.size(), 1u);
    clock_.advance(4s);
    bank.locks().beat();
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{5}, {.fenced_by = &lock}));

    // Its clock stands still, as if it slept; somebody else's goes on.
    ManualClock ahead{clock_.now() + 1min, ManualClock::Mode::auto_advance};
    Locks thieves{process(), {.heartbeat_thread = false}, {.clock = ahead}};
    const Lock next = thieves.acquire("month-end");
    EXPECT_EQ(next.fence(), 2);
    EXPECT_FALSE(lock.is_lost());
    EXPECT_THROW(static_cast<void>(bank.execute<Account>("alice", Deposit{5}, {.fenced_by = &lock})), LeaseLostError);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 5);
    clock_.advance(4s);
    bank.locks().beat();
    EXPECT_TRUE(lock.is_lost());
}

INSTANTIATE_TEST_SUITE_P(Each, LocksOnServers, each_kind(), name_of_kind);

}  // namespace
}  // namespace varve::dynamodb
