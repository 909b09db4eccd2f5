#include "locks/stored_lock.h"
#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/events/event_store.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;

struct Fixture {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store};
};

TEST(Application, its_sweeper_removes_what_dead_waiters_have_left_in_the_queues_of_locks) {
    const auto store = std::make_shared<HookedStore>(open("memory:"));
    testing::ManualClock clock;
    std::promise<store::Key> removed;
    store->before_write = [&](std::span<const store::Write> writes) {
        if (std::holds_alternative<store::Erase>(writes.front().action)) removed.set_value(writes.front().key);
    };
    const Application bank{store, {.runtime = {.clock = clock}}};
    const store::Write dead = locks::enqueue("a", 1, {.owner = "dead", .expires = clock.now()});
    static_cast<void>(store->write({&dead, 1}));
    clock.wait_for_sleepers(1);
    clock.advance(std::chrono::minutes{1});
    EXPECT_EQ(removed.get_future().get(), locks::queue_key("a", 1));
}

TEST(Application, a_command_appends_and_a_load_folds) {
    Fixture f;
    ASSERT_TRUE(f.bank.execute<Account>("alice", Open{"Alice"}));
    const Outcome deposited = f.bank.execute<Account>("alice", Deposit{100});
    ASSERT_TRUE(deposited);
    EXPECT_EQ(deposited->written, (std::vector<Receipt::Written>{{"account-alice", 2}}));
    EXPECT_EQ(deposited->path, transactions::Path::single);
    const Loaded<Account> alice = f.bank.load<Account>("alice");
    EXPECT_EQ(alice.version, 2);
    EXPECT_EQ(alice.state.owner, "Alice");
    EXPECT_EQ(alice.state.balance, 100);
}

TEST(Application, a_rejection_is_a_value_and_writes_nothing) {
    Fixture f;
    const Outcome outcome = f.bank.execute<Account>("alice", Withdraw{1});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, "insufficient_funds");
    EXPECT_EQ(f.bank.load<Account>("alice").version, 0);
}

TEST(Application, a_transaction_is_all_or_nothing) {
    Fixture f;
    ASSERT_TRUE(f.bank.execute<Account>("alice", Deposit{100}));
    const auto transfer = [&](std::int64_t cents) {
        return f.bank.transact([&](Transaction& tx) {
            tx.execute<Account>("bob", Deposit{cents});
            tx.execute<Account>("alice", Withdraw{cents});
        });
    };
    const Outcome outcome = transfer(60);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->written, (std::vector<Receipt::Written>{{"account-alice", 2}, {"account-bob", 1}}));
    EXPECT_EQ(transfer(60).error().code, "insufficient_funds");
    EXPECT_EQ(f.bank.load<Account>("alice").state.balance, 40);
    EXPECT_EQ(f.bank.load<Account>("bob").state.balance, 60);
}

TEST(Application, a_rejection_that_the_body_catches_ends_the_transaction_all_the_same) {
    Fixture f;
    const Outcome outcome = f.bank.transact([](Transaction& tx) {
        tx.execute<Account>("bob", Deposit{1});
        try {
            tx.execute<Account>("alice", Withdraw{1});
        } catch (...) {
        }
    });
    EXPECT_FALSE(outcome);
    EXPECT_EQ(f.bank.load<Account>("bob").version, 0);
}

TEST(Application, a_users_exception_passes_through_and_rolls_back) {
    struct Mine {};
    Fixture f;
    EXPECT_THROW(static_cast<void>(f.bank.transact([](Transaction& tx) {
                     tx.execute<Account>("bob", Deposit{1});
                     throw Mine{};
                 })),
                 Mine);
    EXPECT_EQ(f.bank.load<Account>("bob").version, 0);
}

TEST(Application, a_command_id_makes_a_repeat_return_the_first_receipt) {
    Fixture f;
    const CommandOptions once{.command_id = "deposit-1"};
    const Outcome first = f.bank.execute<Account>("alice", Deposit{100}, once);
    const Outcome second = f.bank.execute<Account>("alice", Deposit{100}, once);
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    EXPECT_FALSE(first->repeated);
    EXPECT_TRUE(second->repeated);
    EXPECT_EQ(first->written, second->written);
    EXPECT_EQ(first->transaction, second->transaction);
    EXPECT_EQ(f.bank.load<Account>("alice").state.balance, 100);
}

TEST(Application, an_expected_version_is_compared_before_the_command_decides) {
    Fixture f;
    ASSERT_TRUE(f.bank.execute<Account>("alice", Deposit{100}));
    const Outcome wrong = f.bank.execute<Account>("alice", Deposit{1}, {.expected_version = 0});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, "wrong_version");
    EXPECT_TRUE(f.bank.execute<Account>("alice", Deposit{1}, {.expected_version = 1}));
}

TEST(Application, metadata_are_stored_with_the_events) {
    Fixture f;
    ASSERT_TRUE(f.bank.execute<Account>("alice", Deposit{1},
                                        {.command_id = "c1", .causation = "because", .headers = {{"user", "eve"}}}));
    const Stream history = f.bank.history<Account>("alice");
    ASSERT_EQ(history.events.size(), 1u);
    EXPECT_EQ(*history.events[0].metadata, (Metadata{"c1", "c1", "because", {{"user", "eve"}}}));
    EXPECT_EQ(history.events[0].event, (EventData{"Deposited", 1, R"({"cents":1})"}));
    EXPECT_TRUE(history.events[0].id.ends_with(":0"));
}

TEST(Application, a_time_to_wait_that_cannot_be_is_refused_by_its_name) {
    const auto refused = [](const ApplicationOptions& options) -> std::string {
        try {
            Application bank{open("memory:"), options};
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "not refused";
    };
    const Duration negative{-1};
    const std::string end = " is -0.000001 s; a time to wait cannot be negative";
    EXPECT_EQ(refused({.sweep_interval = negative}), "ApplicationOptions::sweep_interval" + end);
    EXPECT_EQ(refused({.scan = {.page_interval = negative}}), "ApplicationOptions::scan.page_interval" + end);
    EXPECT_EQ(refused({.scan = {.pause = negative}}), "ApplicationOptions::scan.pause" + end);
    EXPECT_EQ(refused({.retry = {.first_delay = negative}}), "ApplicationOptions::retry.first_delay" + end);
    EXPECT_EQ(refused({.retry = {.delay_max = negative}}), "ApplicationOptions::retry.delay_max" + end);
    EXPECT_EQ(refused({.retry = {.time_max = negative}}), "ApplicationOptions::retry.time_max" + end);
    EXPECT_EQ(refused({.escalation = {.queue_time_max = negative}}),
              "ApplicationOptions::escalation.queue_time_max" + end);
    EXPECT_EQ(refused({.escalation = {.reserve_after_time = negative}}),
              "ApplicationOptions::escalation.reserve_after_time" + end);
    EXPECT_NE(refused({.sweep_interval = Duration{0}}).find("without a pause"), std::string::npos);
    EXPECT_EQ(refused({.sweep = false, .sweep_interval = Duration{0}}), "not refused");
}

TEST(Application, an_aggregate_is_loaded_as_of_a_version) {
    Fixture f;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(f.bank.execute<Account>("alice", Deposit{10}));
    EXPECT_EQ(f.bank.load<Account>("alice", AsOf::version(2)).state.balance, 20);
    EXPECT_EQ(f.bank.load<Account>("alice", AsOf::version(9)).version, 3);
}

TEST(Application, an_inline_projection_commits_with_its_events) {
    for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
        Application bank{open("memory:"), {.transactions = {.strategy = strategy}}};
        bank.project<Account>(ProjectBalance{});
        ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
        ASSERT_TRUE(bank.transact([](Transaction& tx) {
            tx.execute<Account>("alice", Withdraw{30});
            tx.execute<Account>("bob", Deposit{30});
        }));
        EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{70});
        EXPECT_EQ(bank.rows<Balance>().get("bob"), Balance{30});
        EXPECT_EQ(bank.rows<Balance>().get("carol"), std::nullopt);
    }
}

struct ReceiptWanted {
    std::string to;
};

TEST(Application, effects_are_stored_with_the_commit_or_not_at_all) {
    for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
        Application bank{open("memory:"), {.transactions = {.strategy = strategy}}};
        const Outcome events = bank.transact([](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{1});
            tx.execute<Account>("bob", Deposit{1});
            tx.effect(ReceiptWanted{"alice"});
            tx.effect(ReceiptWanted{"bob"});
        });
        const Outcome row = bank.transact([](Transaction& tx) {
            tx.rows<Balance>().put("alice", {1});
            tx.effect(ReceiptWanted{"alice"});
        });
        const Outcome nothing_else = bank.transact([](Transaction& tx) { tx.effect(ReceiptWanted{"carol"}); });
        for (const Outcome* outcome : {&events, &row, &nothing_else}) {
            ASSERT_TRUE((*outcome)->effects_slot);
            const auto& [stream, version] = *(*outcome)->effects_slot;
            const std::vector<Effect> effects = bank.events().effects(stream, version);
            ASSERT_EQ(effects.size(), outcome == &events ? 2u : 1u);
            EXPECT_EQ(effects[0].id, (*outcome)->transaction + ":0");
            EXPECT_EQ(effects[0].effect.type, "ReceiptWanted");
        }
        EXPECT_FALSE(bank.transact([](Transaction& tx) {
            tx.effect(ReceiptWanted{"alice"});
            tx.execute<Account>("alice", Withdraw{5});
        }));
    }
}

TEST(Application, opposing_transfers_of_many_threads_lose_nothing) {
    for (const auto strategy : {transactions::Strategy::automatic, transactions::Strategy::protocol}) {
        Application bank{open("memory:"), {.transactions = {.strategy = strategy}}};
        bank.project<Account>(ProjectBalance{});
        const std::vector<std::string> names{"a", "b", "c", "d"};
        for (const std::string& name : names) ASSERT_TRUE(bank.execute<Account>(name, Deposit{1000}));
        {
            std::vector<std::jthread> threads;
            for (std::size_t t = 0; t < 4; ++t) {
                threads.emplace_back([&, t] {
                    for (std::size_t i = 0; i < 50; ++i) {
                        const std::string& from = names[(t + i) % 4];
                        const std::string& to = names[(t + 3 * i + 1) % 4];
                        if (from == to) continue;
                        static_cast<void>(bank.transact([&](Transaction& tx) {
                            tx.execute<Account>(from, Withdraw{7});
                            tx.execute<Account>(to, Deposit{7});
                        }));
                    }
                });
            }
        }
        std::int64_t sum = 0;
        for (const std::string& name : names) {
            const std::int64_t balance = bank.load<Account>(name).state.balance;
            EXPECT_EQ(bank.rows<Balance>().get(name), Balance{balance});
            sum += balance;
        }
        EXPECT_EQ(sum, 4000);
    }
}

TEST(AnApplication, gives_back_the_store_that_it_was_given) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, {.sweep = false}};
    EXPECT_EQ(&bank.store(), store.get());  // an adapter's functions look at what it is
}

TEST(AnApplication, without_a_store_is_refused) {
    EXPECT_THROW(Application{nullptr}, InvalidError);
}

}  // namespace
}  // namespace varve
