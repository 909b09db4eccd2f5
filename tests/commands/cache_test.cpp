#include "support/account.h"
#include "support/hooked_store.h"
#include "transactions/slot.h"

#include <varve/aggregates/cache_metrics.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Strategy;

/// Two processes on one store; what the first one asks is counted.
struct Cache : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<HookedStore> inner = std::make_shared<HookedStore>(open("memory:"));
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(inner);
    Application bank = make(store);
    Application other = make(inner);

    Application make(std::shared_ptr<store::ItemStore> on, std::size_t cache_bytes_max = 1 << 20,
                     Strategy strategy = Strategy::automatic) {
        return Application{on, options({.transactions = {.strategy = strategy}, .cache_bytes_max = cache_bytes_max})};
    }
    void SetUp() override {
        for (const char* id : {"alice", "bob"}) {
            ASSERT_TRUE(bank.execute<Account>(id, Deposit{100}));
        }
        store->reset();
    }
    /// What was asked since it was last asked.
    testing::RequestCounts counts() {
        const testing::RequestCounts counts = store->counts();
        store->reset();
        return counts;
    }
};

TEST_F(Cache, a_hit_makes_a_command_one_conditional_write_and_no_read) {
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(bank.execute<Account>("alice", Withdraw{10}));
        const testing::RequestCounts asked = counts();
        EXPECT_EQ(asked.writes, 1u);
        EXPECT_EQ(asked.round_trips(), 1u);
    }
    EXPECT_EQ(other.load<Account>("alice").state.balance, 70);
    EXPECT_EQ(bank.cache_metrics().hits, 3u);
    EXPECT_EQ(bank.cache_metrics().misses, 2u);
}

TEST_F(Cache, a_refusal_reads_only_the_missing_slots) {
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(other.execute<Account>("alice", Deposit{1}));
    }
    std::size_t slots_read = 0;
    inner->after_query = [&](const store::Page& page) { slots_read += page.records.size(); };
    const Outcome outcome = bank.execute<Account>("alice", Withdraw{50});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(slots_read, 5u);
    EXPECT_EQ(outcome->written.front().version, 7);
    const testing::RequestCounts asked = counts();
    EXPECT_EQ(asked.writes, 2u);
    EXPECT_EQ(asked.refused_writes, 1u);
    EXPECT_EQ(asked.queries, 1u);
    EXPECT_EQ(asked.round_trips(), 3u);
}

TEST_F(Cache, a_refusal_of_memory_is_no_attempt_that_the_policy_counts) {
    Application once{store, options({.retry = RetryPolicy::once()})};
    ASSERT_TRUE(once.execute<Account>("alice", Deposit{1}));
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{1}));
    EXPECT_TRUE(once.execute<Account>("alice", Deposit{1}));
    const CommandOptions with_id{.command_id = "c1"};
    EXPECT_TRUE(other.execute<Account>("alice", Deposit{1}, with_id));
    const Outcome repeat = once.execute<Account>("alice", Deposit{1}, with_id);
    ASSERT_TRUE(repeat);
    EXPECT_TRUE(repeat->repeated);
}

TEST_F(Cache, a_rejection_never_rests_on_what_is_out_of_date) {
    EXPECT_EQ(bank.execute<Account>("alice", Withdraw{150}).error().code, "insufficient_funds");
    EXPECT_EQ(counts().round_trips(), 1u) << "one look at whether the next slot is free";
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{100}));
    EXPECT_TRUE(bank.execute<Account>("alice", Withdraw{150}));
}

TEST_F(Cache, an_exception_never_rests_on_what_is_out_of_date) {
    struct TooPoor {};
    const auto withdraw = [&](std::int64_t cents) {
        return bank.transact([&](Transaction& tx) {
            if (tx.load<Account>("alice").balance < cents) throw TooPoor{};
            tx.execute<Account>("alice", Withdraw{cents});
        });
    };
    EXPECT_THROW(static_cast<void>(withdraw(150)), TooPoor);
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{100}));
    EXPECT_TRUE(withdraw(150));
}

TEST_F(Cache, a_read_inside_a_transaction_never_rests_on_what_is_out_of_date) {
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{11}));
    std::int64_t seen = 0;
    ASSERT_TRUE(bank.transact([&](Transaction& tx) { seen = tx.load<Account>("alice").balance; }));
    EXPECT_EQ(seen, 111);
}

TEST_F(Cache, a_load_asks_for_what_came_since_and_nothing_else) {
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{11}));
    std::size_t slots_read = 0;
    inner->after_query = [&](const store::Page& page) { slots_read += page.records.size(); };
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 111);
    EXPECT_EQ(slots_read, 1u);
    EXPECT_EQ(bank.load<Account>("alice").version, 2);
    EXPECT_EQ(slots_read, 1u);
    EXPECT_EQ(counts().round_trips(), 2u);
}

TEST_F(Cache, a_transfer_between_known_accounts_is_one_atomic_request) {
    ASSERT_TRUE(bank.transact([](Transaction& tx) {
        tx.execute<Account>("alice", Withdraw{5});
        tx.execute<Account>("bob", Deposit{5});
    }));
    const testing::RequestCounts asked = counts();
    EXPECT_EQ(asked.atomic_batches, 1u);
    EXPECT_EQ(asked.round_trips(), 1u);
}

TEST_F(Cache, a_command_with_an_id_reads_nothing_either) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}, {.command_id = "c1"}));
    EXPECT_EQ(counts().round_trips(), 1u);
    const Outcome repeat = bank.execute<Account>("alice", Deposit{5}, {.command_id = "c1"});
    ASSERT_TRUE(repeat);
    EXPECT_TRUE(repeat->repeated);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 105);
}

TEST_F(Cache, a_repeat_is_recognised_although_its_command_would_be_rejected_or_throw_by_now) {
    const CommandOptions once{.command_id = "c1"};
    ASSERT_TRUE(bank.execute<Account>("alice", Withdraw{100}, once));
    const Outcome repeat = bank.execute<Account>("alice", Withdraw{100}, once);
    ASSERT_TRUE(repeat);
    EXPECT_TRUE(repeat->repeated);
    const CommandOptions twice{.command_id = "c2"};
    ASSERT_TRUE(bank.transact([](Transaction& tx) { tx.execute<Account>("alice", Deposit{1}); }, twice));
    const Outcome thrown = bank.transact([](Transaction&) { throw std::logic_error("never shown"); }, twice);
    ASSERT_TRUE(thrown);
    EXPECT_TRUE(thrown->repeated);
}

TEST_F(Cache, off_reads_the_stream_for_each_command) {
    Application forgetful = make(store, 0);
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(forgetful.execute<Account>("alice", Deposit{1}));
        const testing::RequestCounts asked = counts();
        EXPECT_EQ(asked.queries, 1u);
        EXPECT_EQ(asked.writes, 1u);
    }
}

TEST_F(Cache, does_not_build_on_a_slot_that_its_own_protocol_commit_has_not_finalised) {
    Application protocol = make(store, 1 << 20, Strategy::protocol);
    ASSERT_TRUE(protocol.transact([](Transaction& tx) {
        tx.execute<Account>("alice", Withdraw{5});
        tx.execute<Account>("bob", Deposit{5});
    }));
    later.forget();  // it died before it finalised; the next command does not know
    counts();
    ASSERT_TRUE(protocol.execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(counts().round_trips(), 1u) << "the primary was committed in place";
    ASSERT_TRUE(protocol.execute<Account>("bob", Deposit{1}));
    EXPECT_GT(counts().round_trips(), 1u) << "bob's slot was finalised first";
    const store::Key bobs = transactions::slot_key("account-bob", 2);
    const auto slot = transactions::decode_slot(bobs, inner->read({&bobs, 1}).front());
    EXPECT_TRUE(std::holds_alternative<transactions::Committed>(slot));
    EXPECT_EQ(other.load<Account>("bob").state.balance, 106);
}

TEST_F(Cache, of_a_few_bytes_keeps_what_was_used_last) {
    Application small = make(store, 700);
    for (const char* id : {"alice", "bob", "carol", "dave"}) {
        ASSERT_TRUE(small.execute<Account>(id, Deposit{1}));
    }
    EXPECT_GT(small.cache_metrics().evicted, 0u);
    EXPECT_LE(small.cache_metrics().bytes, 700u);
    counts();
    ASSERT_TRUE(small.execute<Account>("dave", Deposit{1}));
    EXPECT_EQ(counts().round_trips(), 1u);
    ASSERT_TRUE(small.execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(counts().round_trips(), 2u);
}

}  // namespace
}  // namespace varve
