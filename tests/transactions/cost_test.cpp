#include "support/account.h"
#include "support/coordinator_of.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;

struct Fixture : testing::ManualWorld {
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(open("memory:"));
    Application bank{store, options({.transactions = {.strategy = transactions::Strategy::protocol}})};
};

class Transfers : public ::testing::TestWithParam<int> {};

TEST_P(Transfers, over_n_streams_cost_2n_minus_1_writes_and_2_round_trips_to_the_acknowledgement) {
    const int n = GetParam();
    Fixture f;
    transactions::Coordinator& coordinator = coordinator_of(f.bank);
    transactions::Plan plan;
    for (int i = 0; i < n; ++i)
        plan.slots.push_back({transactions::slot_key("account-" + std::to_string(i), 1), 0, {}});
    f.store->reset();
    const auto outcome = coordinator.commit(plan, "tx", Clock::system().now());
    ASSERT_TRUE(std::holds_alternative<transactions::Commit>(outcome));
    EXPECT_EQ(f.store->counts().round_trips(), n == 1 ? 1u : 2u);
    f.later.drain();
    EXPECT_EQ(f.store->counts().writes, static_cast<std::uint64_t>(2 * n - 1));
    EXPECT_EQ(f.store->counts().reads, 0u);
}

TEST_P(Transfers, that_read_one_more_stream_cost_2n_writes_and_3_round_trips) {
    const int n = GetParam();
    Fixture f;
    transactions::Plan plan;
    for (int i = 0; i < n; ++i)
        plan.slots.push_back({transactions::slot_key("account-" + std::to_string(i), 1), 0, {}});
    plan.heads_read.push_back({transactions::slot_key("account-read", 1)});
    f.store->reset();
    const auto outcome = coordinator_of(f.bank).commit(plan, "tx", Clock::system().now());
    ASSERT_TRUE(std::holds_alternative<transactions::Commit>(outcome));
    EXPECT_EQ(f.store->counts().round_trips(), 3u);
    f.later.drain();
    EXPECT_EQ(f.store->counts().writes, static_cast<std::uint64_t>(2 * n));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Transfers, ::testing::Values(1, 2, 5, 10));

TEST(Commands, a_command_on_one_aggregate_costs_one_read_and_one_write) {
    Fixture f;
    f.store->reset();
    ASSERT_TRUE(f.bank.execute<Account>("alice", Deposit{1}));
    f.later.drain();
    EXPECT_EQ(f.store->counts().writes, 1u);
    EXPECT_EQ(f.store->counts().round_trips(), 2u);
}

TEST(Commands, a_transfer_over_known_aggregates_reads_nothing_once_the_one_before_it_is_finalised) {
    for (const int n : {2, 5, 25}) {
        Fixture f;
        const auto pay = [&] {
            return f.bank.transact([&](Transaction& tx) {
                for (int i = 0; i < n; ++i) tx.execute<Account>(std::to_string(i), Deposit{1});
            });
        };
        ASSERT_TRUE(pay());
        f.later.drain();
        for (int again = 0; again < 3; ++again) {
            f.store->reset();
            ASSERT_TRUE(pay());
            EXPECT_EQ(f.store->counts().round_trips(), 2U) << n;
            f.later.drain();
            EXPECT_EQ(f.store->counts().writes, static_cast<std::uint64_t>(2 * n - 1)) << n;
        }
        ASSERT_TRUE(pay());
        f.store->reset();
        ASSERT_TRUE(pay());
        EXPECT_GT(f.store->counts().round_trips(), 2U) << "what nobody has seen finalised is looked at";
    }
}

TEST(Finalising, of_many_transactions_takes_one_round_trip) {
    Fixture f;
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(f.bank.transact([&](Transaction& tx) {
            tx.execute<Account>("from" + std::to_string(i), Deposit{1});
            tx.execute<Account>("to" + std::to_string(i), Deposit{1});
        }));
    }
    f.store->reset();
    f.later.drain();
    EXPECT_EQ(f.store->counts().writes, 10u);
    EXPECT_EQ(f.store->counts().round_trips(), 1u);
}

TEST(Finalising, of_two_that_wrote_the_same_rows_takes_a_batch_for_each) {
    Fixture f;
    f.bank.project<Account>(ProjectBalance{});
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(f.bank.transact([](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{1});
            tx.execute<Account>("bob", Deposit{2});
        }));
    }
    f.store->reset();
    f.store->start_recording();
    f.later.drain();
    EXPECT_EQ(f.store->counts().write_batches, 2u);
    EXPECT_EQ(f.bank.rows<Balance>().get("bob"), Balance{4});
    EXPECT_EQ(f.bank.rows<Balance>().get("alice", transactions::Isolation::uncommitted), Balance{2});
    const std::vector<std::string> recorded = f.store->recorded();
    EXPECT_EQ(std::ranges::count_if(recorded,
                                    [](const std::string& line) { return line.find("refused") != std::string::npos; }),
              1)
        << "the second transaction has finalised what it found of the first";
}

}  // namespace
}  // namespace varve
