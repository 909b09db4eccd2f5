#include "support/account.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/passing_store.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;

struct OfOneTest : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(open("memory:"));
};

TEST_F(OfOneTest, nothing_happens_by_itself) {
    Application bank{store, options({.transactions = {.strategy = transactions::Strategy::protocol}})};
    ASSERT_TRUE(bank.transact([](Transaction& tx) {
        tx.execute<Account>("alice", Deposit{1});
        tx.execute<Account>("bob", Deposit{1});
    }));
    store->reset();
    EXPECT_EQ(store->counts(), testing::RequestCounts{});
    later.drain();
    EXPECT_GT(store->counts().writes, 0u) << "what was prepared is finalised";
}

TEST_F(OfOneTest, a_wait_moves_the_clock_and_returns) {
    struct Silent final : testing::PassingStore {
        using PassingStore::PassingStore;
        store::Page query(const store::Query&) override { throw UnavailableError("no answer"); }
    };
    Application bank{std::make_shared<Silent>(store), options({.retry = {.time_max = std::chrono::hours{1}}})};
    const SteadyTime began = clock.steady_now();
    EXPECT_THROW((void)bank.execute<Account>("alice", Deposit{1}), Error);
    EXPECT_GT(clock.steady_now(), began);
}

}  // namespace
}  // namespace varve
