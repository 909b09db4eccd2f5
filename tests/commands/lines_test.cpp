#include "support/account.h"
#include "support/held_write.h"
#include "support/hooked_store.h"
#include "transactions/slot.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/transactions/metrics.h>

#include <array>
#include <future>
#include <thread>

#include <gtest/gtest.h>

// Transactions of one process that share an aggregate go one after the other.
namespace varve {
namespace {

using namespace account;
using transactions::Strategy;

/// Whoever writes lets all the others run first: what was read is out of date unless somebody kept them away.
class YieldingStore final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        yield();
        return inner().write(writes);
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        yield();
        return inner().write_atomically(writes);
    }

  private:
    static void yield() {
        for (int i = 0; i < 30; ++i) std::this_thread::yield();
    }
};

/// Time passes fifty times more slowly: nobody gives up waiting since the machine is busy.
class SlowClock final : public Clock {
  public:
    Time now() override { return began_ + (Clock::system().now() - began_) / 50; }
    SteadyTime steady_now() override { return steadily_began_ + (Clock::system().steady_now() - steadily_began_) / 50; }
    void sleep_for(Duration duration, std::stop_token stop) override {
        Clock::system().sleep_for(duration, std::move(stop));
    }

  private:
    const Time began_ = Clock::system().now();
    const SteadyTime steadily_began_ = Clock::system().steady_now();
};

void many_callers_on_three_accounts(Strategy strategy, int threads_count, int each) {
    SlowClock clock;
    Application bank{std::make_shared<YieldingStore>(open("memory:")),
                     {.transactions = {.strategy = strategy}, .sweep = false, .runtime = {.clock = clock}}};
    const std::array<const char*, 3> names{"a", "b", "c"};
    for (const char* name : names) ASSERT_TRUE(bank.execute<Account>(name, Deposit{1'000'000}));
    std::atomic<unsigned> attempts_most{0};
    std::atomic<int> executed{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < threads_count; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < each; ++i) {
                    const auto from = static_cast<std::size_t>(t + i) % 3;
                    if (t % 8 == 7) {  // lanes on the same aggregates
                        executed += bank.execute<Account>(names[from], Deposit{1}) ? 1 : 0;
                        continue;
                    }
                    const Outcome moved = bank.transact([&](Transaction& tx) {
                        tx.execute<Account>(names[from], Withdraw{1});
                        tx.execute<Account>(names[(from + 1) % 3], Deposit{1});
                    });
                    ASSERT_TRUE(moved);
                    for (unsigned most = attempts_most;
                         moved->attempts > most && !attempts_most.compare_exchange_weak(most, moved->attempts);) {
                    }
                }
            });
        }
    }
    std::int64_t sum = 0;
    for (const char* name : names) sum += bank.load<Account>(name).state.balance;
    EXPECT_EQ(sum, 3'000'000 + executed);
    const auto commits = static_cast<std::uint64_t>(threads_count * each);
    EXPECT_LT(bank.metrics().conflicts, commits / 5) << "they fight in the store";
    EXPECT_LE(attempts_most, 6u) << "somebody starves";
}

TEST(Lines, many_callers_on_few_aggregates_do_not_fight_in_the_store_natively) {
    many_callers_on_three_accounts(Strategy::automatic, 32, 30);
}

TEST(Lines, many_callers_on_few_aggregates_do_not_fight_in_the_store_by_the_protocol) {
    many_callers_on_three_accounts(Strategy::protocol, 32, 15);
}

TEST(Lines, whoever_is_stuck_keeps_the_next_one_waiting_for_half_a_second) {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    const auto hooked = std::make_shared<HookedStore>(open("memory:"));
    Application bank{hooked, {.sweep = false, .runtime = {.clock = clock}}};
    const auto deposit = [](Transaction& tx) { tx.execute<Account>("alice", Deposit{1}); };
    HeldWrite held{*hooked};
    std::jthread stuck{[&] { EXPECT_TRUE(bank.transact(deposit)); }};
    held.wait();
    const Time began = clock.now();
    EXPECT_TRUE(bank.transact(deposit));
    EXPECT_GE(clock.now() - began, std::chrono::milliseconds{500});
    EXPECT_LT(clock.now() - began, Escalation{}.queue_time_max);
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{1})) << "nor those in its lane";
    held.release();
    stuck.join();
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 3);
}

/// Commands that may take 300 ms, while whatever they wait for takes longer.
struct ShortOfTime : ::testing::Test {
    static constexpr std::chrono::milliseconds time_max{300};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    std::shared_ptr<HookedStore> hooked = std::make_shared<HookedStore>(open("memory:"));

    std::unique_ptr<Application> bank(Strategy strategy = Strategy::automatic, Escalation escalation = {}) {
        const ApplicationOptions options{.retry = {.time_max = time_max},
                                         .escalation = escalation,
                                         .transactions = {.strategy = strategy},
                                         .sweep = false,
                                         .runtime = {.clock = clock}};
        return std::make_unique<Application>(hooked, options);
    }
    void expect_gives_up_in_time(auto&& command) {
        const SteadyTime began = clock.steady_now();
        try {
            static_cast<void>(command());
            ADD_FAILURE() << "it got through";
        } catch (const ConflictError& error) {
            EXPECT_NE(std::string{error.what()}.find("of the 0.3 s"), std::string::npos) << error.what();
            EXPECT_EQ(error.details().stream, "account-alice");
        }
        EXPECT_LE(clock.steady_now() - began, time_max);
    }
    /// By a process that is alive for an hour.
    void claim_alice() {
        const transactions::Claim claim{.tx = "a",
                                        .primary = transactions::slot_key("account-z", 1),
                                        .primary_epoch = 0,
                                        .lease = clock.now() + std::chrono::hours{1},
                                        .priority = {}};
        const store::Write theirs =
            transactions::prepare_slot(transactions::slot_key("account-alice", 1), 0, claim, {});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(hooked->write({&theirs, 1}).front()));
    }
    static void deposit(Transaction& tx) { tx.execute<Account>("alice", Deposit{1}); }
    static void transfer(Transaction& tx) {
        tx.execute<Account>("alice", Deposit{1});
        tx.execute<Account>("bob", Deposit{1});
    }
};

TEST_F(ShortOfTime, a_command_stands_in_line_for_no_longer_than_its_caller_allows) {
    const auto app = bank();
    HeldWrite held{*hooked};
    std::jthread stuck{[&] { EXPECT_TRUE(app->transact(deposit)); }};
    held.wait();
    expect_gives_up_in_time([&] { return app->transact(deposit); });
    held.release();
    stuck.join();
    EXPECT_TRUE(app->transact(deposit)) << "it has left the line";
}

TEST_F(ShortOfTime, a_command_waits_for_another_process_no_longer_than_its_caller_allows) {
    const auto natively = bank();
    const auto by_the_protocol = bank(Strategy::protocol);
    claim_alice();
    for (Application* app : {&*natively, &*by_the_protocol}) {
        expect_gives_up_in_time([&] { return app->execute<Account>("alice", Deposit{1}); });
        expect_gives_up_in_time([&] { return app->transact(transfer); });
        expect_gives_up_in_time([&] { return app->append<Account>("alice", {Deposited{1}}); });
    }
}

TEST_F(ShortOfTime, a_command_meets_a_claim_while_it_prepares_and_waits_no_longer_than_its_caller_allows) {
    const auto app = bank(Strategy::protocol);
    bool claimed = false;
    hooked->before_write = [&](auto) {
        if (!std::exchange(claimed, true)) claim_alice();
    };
    expect_gives_up_in_time([&] { return app->transact(transfer); });
}

TEST_F(ShortOfTime, a_command_queues_for_locks_no_longer_than_its_caller_allows) {
    const auto app = bank(Strategy::automatic, {.queue_after = 1, .queue_time_max = std::chrono::seconds{10}});
    Application rival{std::make_shared<testing::PassingStore>(hooked), {.sweep = false, .runtime = {.clock = clock}}};
    Locks locks{hooked, {.time_to_live = std::chrono::hours{1}, .heartbeat_thread = false}, {.clock = clock}};
    const Lock turn = locks.acquire("$turn-account-alice");
    bool busy = false;
    hooked->before_write = [&](std::span<const store::Write> writes) {
        if (busy || writes.front().key.table != "events") return;
        busy = true;
        EXPECT_TRUE(rival.execute<Account>("alice", Deposit{1}));
        busy = false;
    };
    expect_gives_up_in_time([&] { return app->transact(deposit); });
    hooked->before_write = [](auto) {};
}

TEST(Conflicts, tell_the_aggregate_its_versions_and_the_attempts) {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    const auto hooked = std::make_shared<HookedStore>(open("memory:"));
    Application bank{hooked, {.retry = {.attempts_max = 3}, .sweep = false, .runtime = {.clock = clock}}};
    Application rival{std::make_shared<testing::PassingStore>(hooked), {.sweep = false}};
    bool busy = false;
    hooked->before_write = [&](auto) {
        if (std::exchange(busy, true)) return;
        EXPECT_TRUE(rival.execute<Account>("alice", Deposit{1}));
        busy = false;
    };
    try {
        static_cast<void>(bank.transact([](Transaction& tx) { tx.execute<Account>("alice", Deposit{1}); }));
        FAIL() << "it got through";
    } catch (const ConflictError& error) {
        const ConflictDetails& details = error.details();
        EXPECT_EQ(details.stream, "account-alice");
        EXPECT_EQ(details.item, "events/account-alice/" + std::to_string(*details.expected + 1));
        EXPECT_EQ(details.actual, bank.load<Account>("alice").version);
        EXPECT_EQ(details.actual, *details.expected + 1);
        EXPECT_GE(details.attempts, 3u);
        EXPECT_NE(details.met.find("written by somebody else"), std::string::npos) << details.met;
        EXPECT_NE(std::string{error.what()}.find(details.met), std::string::npos);
    }
}

}  // namespace
}  // namespace varve
