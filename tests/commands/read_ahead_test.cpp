// What a command reads before it can decide goes out together, and what this process knows is not read.

#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/hooked_store.h"

#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Strategy;

struct KeepBalance : ProjectBalance {
    using OwnRows = Balance;
};

/// The same, with snapshots.
struct LongAccount {
    static constexpr std::string_view name = "long";
    static constexpr SnapshotPolicy snapshots{.every_slots = 50};
    using Event = std::variant<Deposited, Withdrawn>;

    std::int64_t balance = 0;

    void apply(const Deposited& e) { balance += e.cents; }
    void apply(const Withdrawn& e) { balance -= e.cents; }
    Decision<Event> decide(const Deposit& c) const { return Deposited{c.cents}; }
    Decision<Event> decide(const Withdraw& c) const { return Withdrawn{c.cents}; }
};

template <class A>
Outcome transfer(Application& bank, std::int64_t cents = 1) {
    return bank.transact([&](Transaction& tx) {
        tx.load_all<A>({"alice", "bob"});
        tx.execute<A>("alice", Withdraw{cents});
        tx.execute<A>("bob", Deposit{cents});
    });
}

class ReadAhead : public ::testing::Test, protected testing::ManualWorld {
  protected:
    /// A process that has just begun.
    template <class A = Account>
    std::unique_ptr<Application> process(Strategy strategy = Strategy::automatic) {
        auto bank = std::make_unique<Application>(store, options({.transactions = {.strategy = strategy}}));
        bank->template project<A>(KeepBalance{});
        bank->template rows<Balance>();  // asks once for the table and its indexes
        return bank;
    }
    template <class A = Account>
    void open_accounts(int deposits = 1) {
        const auto bank = process<A>();
        bank->template rows<Balance>();
        for (int i = 0; i < deposits; ++i) {
            for (const char* id : {"alice", "bob"}) ASSERT_TRUE(bank->template execute<A>(id, Deposit{100}));
        }
        later.drain();
    }
    /// Round trips of a transfer, the commit's included.
    template <class A = Account>
    std::uint64_t round_trips(Application& bank) {
        store->reset();
        EXPECT_TRUE(transfer<A>(bank));
        const std::uint64_t taken = store->counts().round_trips();
        later.drain();
        return taken;
    }

    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(memory::open());
};

TEST_F(ReadAhead, a_transfer_reads_in_one_round_trip_what_it_does_not_know_and_nothing_that_it_knows) {
    open_accounts();
    const auto bank = process();
    EXPECT_EQ(round_trips(*bank), 2U);
    EXPECT_EQ(store->counts().joint_reads, 1U);
    EXPECT_EQ(store->counts().atomic_batches, 1U);
    for (int again = 0; again < 3; ++again) {
        EXPECT_EQ(round_trips(*bank), 1U);
        EXPECT_EQ(store->counts().reads, 0U);
        EXPECT_EQ(store->counts().atomic_batches, 1U);
    }
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{96});
    EXPECT_EQ(bank->rows<Balance>().get("bob"), Balance{104});
}

TEST_F(ReadAhead, by_the_protocol_a_transfer_reads_the_rows_of_both_together) {
    open_accounts();
    const auto bank = process(Strategy::protocol);
    EXPECT_EQ(round_trips(*bank), 3U) << "cold: one to read, two to commit";
    EXPECT_EQ(round_trips(*bank), 3U) << "warm: rows are only intended when the commit is acknowledged";
    EXPECT_EQ(store->counts().joint_reads + store->counts().read_batches, 1U);
}

TEST_F(ReadAhead, a_command_on_one_aggregate_reads_its_stream_and_its_row_together) {
    open_accounts();
    const auto bank = process();
    store->reset();
    ASSERT_TRUE(bank->execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(store->counts().round_trips(), 2U);
    store->reset();
    ASSERT_TRUE(bank->execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(store->counts().round_trips(), 1U);
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{102});
}

TEST_F(ReadAhead, snapshots_and_the_slots_since_come_in_one_round_trip) {
    for (const int deposits : {1, 30, 60, 250}) {
        store = std::make_shared<testing::CountingStore>(memory::open());
        open_accounts<LongAccount>(deposits);
        const auto bank = process<LongAccount>();
        EXPECT_EQ(round_trips<LongAccount>(*bank), 2U) << deposits;
        EXPECT_EQ(bank->load<LongAccount>("alice").state.balance, deposits * 100 - 1) << deposits;
        EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{deposits * 100 - 1}) << deposits;
    }
}

TEST_F(ReadAhead, a_stream_whose_newest_slots_do_not_reach_back_to_its_snapshot_is_read_from_there) {
    open_accounts<LongAccount>(60);
    {
        // Another program appends more than a page of the newest, and takes no snapshot.
        auto last = store->query({.table = "events", .partition = "long-alice", .descending = true, .limit = 1});
        store::Record slot = last.records.front();
        for (int i = 0; i < 200; ++i) {
            slot.key.sort = transactions::version_of(slot.key) + 1;
            const store::Write write{slot.key, store::Put{slot.item}, !store::item_exists()};
            ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&write, 1}).front()));
        }
    }
    const auto bank = process<LongAccount>();
    ASSERT_TRUE(transfer<LongAccount>(*bank));
    EXPECT_EQ(bank->load<LongAccount>("alice").state.balance, 26'000 - 1);
    EXPECT_EQ(bank->load<LongAccount>("alice").version, 261);
}

TEST_F(ReadAhead, a_long_stream_is_read_page_after_page) {
    open_accounts(2100);
    const auto bank = process();
    ASSERT_TRUE(transfer<Account>(*bank));
    EXPECT_EQ(bank->load<Account>("alice").version, 2101);
    EXPECT_EQ(bank->load<Account>("alice").state.balance, 209'999);
}

TEST_F(ReadAhead, what_others_have_written_since_is_found_by_the_refusal) {
    open_accounts();
    const auto bank = process();
    const auto other = process();
    ASSERT_TRUE(transfer<Account>(*bank));
    ASSERT_TRUE(other->execute<Account>("alice", Withdraw{90}));
    const auto too_much = transfer<Account>(*bank, 50);
    ASSERT_FALSE(too_much) << "decided on what is known to be so";
    EXPECT_EQ(too_much.error().code, "insufficient_funds");
    ASSERT_TRUE(transfer<Account>(*bank, 9));
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{0});
    EXPECT_EQ(bank->rows<Balance>().get("bob"), Balance{110});
}

TEST_F(ReadAhead, a_row_that_was_changed_without_its_aggregate_is_found_by_the_refusal) {
    open_accounts();
    const auto bank = process();
    ASSERT_TRUE(transfer<Account>(*bank));
    const store::Key key{"balances", "alice"};
    const transactions::Image seen =
        coordinator_of(*bank).reader().rows({&key, 1}, transactions::Isolation::committed)[0];
    const store::Write by_hand = transactions::write_row(key, seen, {.data = R"({"cents":1000})", .rev = "by hand"});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&by_hand, 1}).front()));
    ASSERT_TRUE(transfer<Account>(*bank));
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{999});
    EXPECT_EQ(round_trips(*bank), 1U) << "and remembered as it is now";
}

TEST_F(ReadAhead, a_rejection_for_what_a_row_says_rests_on_what_it_says_now) {
    open_accounts();
    const auto bank = process();
    const auto other = process();
    ASSERT_TRUE(transfer<Account>(*bank));
    ASSERT_TRUE(other->execute<Account>("alice", Deposit{1000}));
    const auto spend = bank->transact([](Transaction& tx) {
        tx.load<Account>("alice");
        if (tx.rows<Balance>().get("alice")->cents < 1000) tx.reject(reject("poor"));
        tx.execute<Account>("alice", Withdraw{1000});
    });
    EXPECT_TRUE(spend);
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{99});
}

TEST_F(ReadAhead, what_a_dead_process_has_claimed_is_settled_before_it_is_built_on) {
    open_accounts();
    {
        const auto dying = process(Strategy::protocol);
        ASSERT_TRUE(transfer<Account>(*dying, 10));
        later.forget();  // committed, and never finalised
    }
    const auto bank = process();
    ASSERT_TRUE(transfer<Account>(*bank, 10));
    EXPECT_EQ(bank->rows<Balance>().get("alice"), Balance{80});
    EXPECT_EQ(bank->rows<Balance>().get("bob"), Balance{120});
    EXPECT_EQ(bank->load<Account>("bob").state.balance, 120);
}

TEST_F(ReadAhead, what_is_loaded_together_and_not_needed_is_still_part_of_the_transaction) {
    open_accounts();
    const auto hooked = std::make_shared<HookedStore>(store);
    Application bank{hooked, options()};
    const auto other = process();
    int attempts = 0;
    const auto outcome = bank.transact([&](Transaction& tx) {
        tx.load_all<Account>({"alice", "bob", "alice"});
        if (++attempts == 1) {
            ASSERT_TRUE(other->execute<Account>("bob", Deposit{1}));
        }
        tx.execute<Account>("alice", Deposit{1});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(attempts, 2);
}

}  // namespace
}  // namespace varve
