#include "commands/application_parts.h"
#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/commands/lane_metrics.h>
#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Path;
using Written = std::vector<Receipt::Written>;

/// Whatever is submitted waits in its lane until it is drained: so what goes together is known.
struct Lanes : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<HookedStore> hooked = std::make_shared<HookedStore>(open("memory:"));
    std::shared_ptr<testing::CountingStore> store = std::make_shared<testing::CountingStore>(hooked);
    Application bank = make(store, {});
    Application other = make(hooked, {});

    Application make(std::shared_ptr<store::ItemStore> on, LaneOptions lanes) {
        return Application{on, options({.lanes = lanes})};
    }
    std::vector<Outcome> drained(std::vector<std::future<Outcome>> futures) {
        later.drain();
        std::vector<Outcome> outcomes;
        for (auto& future : futures) outcomes.push_back(future.get());
        return outcomes;
    }
    template <class... Commands>
    std::vector<Outcome> together(Commands... commands) {
        std::vector<std::future<Outcome>> futures;
        (futures.push_back(bank.submit<Account>("alice", commands)), ...);
        return drained(std::move(futures));
    }
    std::int64_t balance(const char* id = "alice") { return other.load<Account>(id).state.balance; }
};

TEST_F(Lanes, what_waits_in_a_lane_is_appended_as_one_slot) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    store->reset();
    std::vector<std::future<Outcome>> futures;
    for (int i = 1; i <= 50; ++i) futures.push_back(bank.submit<Account>("alice", Deposit{i}));
    for (const Outcome& outcome : drained(std::move(futures))) {
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->written, (Written{{"account-alice", 2}}));
        EXPECT_EQ(outcome->path, Path::single);
    }
    EXPECT_EQ(store->counts().writes, 1u);
    EXPECT_EQ(store->counts().round_trips(), 1u);
    EXPECT_EQ(balance(), 1 + 50 * 51 / 2);
    EXPECT_EQ(bank.lane_metrics().commands, 51u);
    EXPECT_EQ(bank.lane_metrics().batches, 2u);
}

TEST_F(Lanes, each_is_decided_on_what_the_ones_before_it_left_and_a_rejection_rejects_only_itself) {
    const auto outcomes = together(Withdraw{10}, Deposit{30}, Withdraw{20}, Withdraw{20}, Deposit{1});
    ASSERT_FALSE(outcomes[0]);
    EXPECT_EQ(outcomes[0].error().code, "insufficient_funds");
    EXPECT_TRUE(outcomes[1]);
    EXPECT_TRUE(outcomes[2]);
    EXPECT_FALSE(outcomes[3]);
    EXPECT_TRUE(outcomes[4]);
    EXPECT_EQ(balance(), 11);
    EXPECT_EQ(other.load<Account>("alice").version, 1);
}

TEST_F(Lanes, each_keeps_its_id_its_metadata_and_its_receipt) {
    std::vector<std::future<Outcome>> futures;
    futures.push_back(bank.submit<Account>("alice", Deposit{1}, {.command_id = "c1", .headers = {{"user", "eve"}}}));
    futures.push_back(bank.submit<Account>("alice", Deposit{2}, {.correlation = "k"}));
    futures.push_back(bank.submit<Account>("alice", Deposit{3}));
    futures.push_back(bank.submit<Account>("alice", Deposit{4}, {.command_id = "c4"}));
    store->reset();
    const auto outcomes = drained(std::move(futures));
    EXPECT_EQ(store->counts().atomic_batches, 1u) << "the ids' slots go with the events";
    EXPECT_EQ(store->counts().writes, 3u);
    const Stream history = other.history<Account>("alice");
    ASSERT_EQ(history.events.size(), 4u);
    EXPECT_EQ(history.head, 1);
    EXPECT_EQ(*history.events[0].metadata, (Metadata{"c1", "c1", "", {{"user", "eve"}}}));
    EXPECT_EQ(*history.events[1].metadata, (Metadata{"", "k", "", {}}));
    EXPECT_EQ(*history.events[2].metadata, Metadata{});
    EXPECT_EQ(*history.events[3].metadata, (Metadata{"c4", "c4", "", {}}));
    for (const auto& [id, cents] : {std::pair{"c1", 1}, std::pair{"c4", 4}}) {
        const Outcome repeat = other.execute<Account>("alice", Deposit{cents}, {.command_id = id});
        ASSERT_TRUE(repeat);
        EXPECT_TRUE(repeat->repeated);
        EXPECT_EQ(repeat->written, (Written{{"account-alice", 1}}));
        EXPECT_EQ(repeat->transaction, outcomes[0]->transaction);
    }
    EXPECT_EQ(balance(), 10);
}

TEST_F(Lanes, of_several_with_one_id_one_is_executed) {
    ASSERT_TRUE(other.execute<Account>("alice", Deposit{10}, {.command_id = "earlier"}));
    std::vector<std::future<Outcome>> futures;
    for (const char* id : {"once", "earlier", "once", "alone", "once"})
        futures.push_back(bank.submit<Account>("alice", Deposit{10}, {.command_id = id}));
    std::size_t repeated = 0;
    for (const Outcome& outcome : drained(std::move(futures))) {
        ASSERT_TRUE(outcome);
        repeated += outcome->repeated;
    }
    EXPECT_EQ(repeated, 3u);
    EXPECT_EQ(balance(), 30);
}

TEST_F(Lanes, a_refused_append_decides_all_again) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{10}));
    ASSERT_TRUE(other.execute<Account>("alice", Withdraw{10}));
    const auto outcomes = together(Withdraw{5}, Deposit{3}, Withdraw{2});
    EXPECT_FALSE(outcomes[0]) << "what it was first decided on was no longer true";
    ASSERT_TRUE(outcomes[1]);
    ASSERT_TRUE(outcomes[2]);
    EXPECT_EQ(outcomes[2]->written, (Written{{"account-alice", 3}}));
    EXPECT_EQ(outcomes[2]->attempts, 2u);
    EXPECT_EQ(balance(), 1);
}

struct TooMuch {};
struct Popped : InvalidError {
    Popped() : InvalidError("popped") {}
};
struct Grown {
    std::int64_t by = 0;
};
struct Grow {
    std::int64_t by = 0;
    bool burst_when_applied = false;
};
/// Throws where no aggregate should.
struct Balloon {
    static constexpr std::string_view name = "balloon";
    using Event = std::variant<Grown>;
    std::int64_t size = 0;

    void apply(const Grown& e) {
        size += e.by;
        if (e.by == 13) throw TooMuch{};
    }
    std::size_t bytes() const {
        if (size > 90) throw TooMuch{};
        return sizeof(*this);
    }
    Decision<Event> decide(const Grow& c) const {
        if (c.by > 100) throw TooMuch{};
        if (c.by == -1) throw UnavailableError("no air");
        if (c.by == -2) throw InDoubtError("is there air?", {});
        if (c.by == -3) throw Popped{};
        return {Grown{c.by}, Grown{c.burst_when_applied ? 13 : 0}};
    }
};

TEST_F(Lanes, an_exception_fails_only_its_own_future_wherever_it_comes_from) {
    std::vector<std::future<Outcome>> futures;
    for (const Grow& grow : {Grow{1}, Grow{1000}, Grow{2}, Grow{4, true}, Grow{8}})
        futures.push_back(bank.submit<Balloon>("red", grow));
    later.drain();
    EXPECT_THROW(static_cast<void>(futures[1].get()), TooMuch);
    EXPECT_THROW(static_cast<void>(futures[3].get()), TooMuch);
    for (const std::size_t i : {0, 2, 4}) EXPECT_TRUE(futures[i].get());
    EXPECT_EQ(other.load<Balloon>("red").state.size, 11) << "nothing of the ones that threw is left";
}

TEST_F(Lanes, an_error_that_a_handler_throws_is_its_own_and_comes_as_it_was_thrown) {
    std::vector<std::future<Outcome>> futures;
    for (const int by : {-1, 1, -2, 2, -3, 4, -1}) futures.push_back(bank.submit<Balloon>("red", Grow{by}));
    later.drain();
    for (const std::size_t i : {0, 6}) EXPECT_THROW(static_cast<void>(futures[i].get()), UnavailableError);
    EXPECT_THROW(static_cast<void>(futures[2].get()), InDoubtError);
    EXPECT_THROW(static_cast<void>(futures[4].get()), Popped);
    for (const std::size_t i : {1, 3, 5}) EXPECT_TRUE(futures[i].get());
    EXPECT_EQ(other.load<Balloon>("red").state.size, 7);
    EXPECT_THROW(static_cast<void>(bank.execute<Balloon>("red", Grow{-3})), Popped);
}

TEST_F(Lanes, what_is_committed_is_told_so_although_its_state_cannot_be_kept) {
    EXPECT_TRUE(bank.execute<Balloon>("red", Grow{91}));
    Application forgetful{hooked, {.sweep = false, .cache_bytes_max = 0, .runtime = {.clock = clock}}};
    EXPECT_EQ(forgetful.load<Balloon>("red").state.size, 91);
}

TEST_F(Lanes, an_expected_version_is_that_of_the_slot_before) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    std::vector<std::future<Outcome>> futures;
    futures.push_back(bank.submit<Account>("alice", Deposit{1}, {.expected_version = 1}));
    futures.push_back(bank.submit<Account>("alice", Deposit{1}, {.expected_version = 1}));
    futures.push_back(bank.submit<Account>("alice", Deposit{1}, {.expected_version = 2}));
    const auto outcomes = drained(std::move(futures));
    EXPECT_TRUE(outcomes[0]);
    EXPECT_EQ(outcomes[1].error().code, "wrong_version");
    EXPECT_TRUE(outcomes[2]);
    EXPECT_EQ(balance(), 3);
}

TEST_F(Lanes, what_does_not_fit_one_item_is_split_and_what_never_fits_fails_alone) {
    const auto small = open("memory:?item_bytes_max=4096");
    Application tight = make(small, {});
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 20; ++i) futures.push_back(tight.submit<Account>("alice", Deposit{i}));
    for (int i = 0; i < 5; ++i)
        futures.push_back(tight.submit<Account>("alice", Open{std::string(i == 3 ? 5000 : 1000, 'x')}));
    for (int i = 0; i < 200; ++i) futures.push_back(tight.submit<Account>("alice", Deposit{i}));
    later.drain();
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < futures.size(); ++i) {
        if (i == 23) {
            EXPECT_TRUE(futures[i].get().error().code == "already_open");
            continue;
        }
        accepted += futures[i].get().has_value();
    }
    EXPECT_EQ(accepted, 221u);
    const Version version = tight.load<Account>("alice").version;
    EXPECT_GT(version, 3);
    EXPECT_LT(version, 40);

    auto never = tight.submit<Account>("bob", Open{std::string(5000, 'x')});
    auto good = tight.submit<Account>("bob", Deposit{1});
    later.drain();
    EXPECT_THROW(static_cast<void>(never.get()), InvalidError);
    EXPECT_TRUE(good.get());
}

TEST_F(Lanes, with_a_projection_write_each_row_once) {
    bank.project<Account>(ProjectBalance{});
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    store->reset();
    for (const Outcome& outcome : together(Deposit{1}, Withdraw{500}, Deposit{2}, Withdraw{3})) {
        EXPECT_EQ(outcome ? outcome->path : Path::native, Path::native);
    }
    EXPECT_EQ(store->counts().writes, 2u);
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{1});
}

TEST_F(Lanes, what_is_rejected_after_it_was_decided_leaves_nothing_in_the_slot_of_the_others) {
    const auto limit = [](Transaction& tx, const ProjectedEvent& decided) {
        const auto& event = *static_cast<const Account::Event*>(decided.event);
        const auto* deposited = std::get_if<Deposited>(&event);
        if (deposited != nullptr && deposited->cents > 100) tx.reject({.code = "too_much", .message = {}});
    };
    detail::parts_of(bank).project(
        {.aggregate = aggregate_type<Account>(), .projection = NamedType::of<decltype(limit)>("limit"), .run = limit});
    const auto outcomes = together(Deposit{500}, Deposit{1}, Deposit{600}, Deposit{2}, Deposit{700});
    for (const std::size_t i : {0u, 2u, 4u}) {
        ASSERT_FALSE(outcomes[i]);
        EXPECT_EQ(outcomes[i].error().code, "too_much");
    }
    EXPECT_TRUE(outcomes[1]);
    EXPECT_TRUE(outcomes[3]);
    EXPECT_EQ(balance(), 3);
}

TEST_F(Lanes, one_slot_for_each_if_the_options_say_so) {
    Application single = make(hooked, {.batch_max = 1});
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 5; ++i) futures.push_back(single.submit<Account>("alice", Deposit{1}));
    const auto outcomes = drained(std::move(futures));
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(outcomes[i]->written.front().version, static_cast<Version>(i + 1));
}

TEST_F(Lanes, of_different_aggregates_do_not_wait_for_each_other) {
    auto alice = bank.submit<Account>("alice", Deposit{1});
    EXPECT_TRUE(bank.execute<Account>("bob", Deposit{1}));
    EXPECT_EQ(alice.wait_for(std::chrono::seconds{0}), std::future_status::timeout);
    later.drain();
    EXPECT_TRUE(alice.get());
}

TEST_F(Lanes, whoever_waits_takes_along_what_was_submitted_before) {
    auto submitted = bank.submit<Account>("alice", Deposit{1});
    const Outcome outcome = bank.execute<Account>("alice", Deposit{2});
    ASSERT_TRUE(outcome);
    EXPECT_EQ(submitted.wait_for(std::chrono::seconds{0}), std::future_status::ready);
    EXPECT_EQ(submitted.get()->written, outcome->written);
}

TEST_F(Lanes, that_are_full_refuse_by_name) {
    Application bounded = make(hooked, {.queue_max = 2, .when_full = LaneOptions::WhenFull::refuse});
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 2; ++i) futures.push_back(bounded.submit<Account>("alice", Deposit{1}));
    try {
        static_cast<void>(bounded.submit<Account>("alice", Deposit{1}));
        FAIL() << "a third one was taken";
    } catch (const OverloadedError& error) {
        EXPECT_NE(std::string{error.what()}.find("account-alice"), std::string::npos);
        EXPECT_TRUE(error.retryable());
    }
    auto bob = bounded.submit<Account>("bob", Deposit{1});
    for (const Outcome& outcome : drained(std::move(futures))) EXPECT_TRUE(outcome);
    EXPECT_TRUE(bob.get());
    EXPECT_TRUE(bounded.execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(bounded.lane_metrics().refused, 1u);
}

TEST_F(Lanes, that_are_full_let_the_caller_wait_and_help) {
    Application bounded = make(hooked, {.queue_max = 2});
    std::vector<std::future<Outcome>> futures;
    for (int i = 0; i < 9; ++i) futures.push_back(bounded.submit<Account>("alice", Deposit{1}));
    for (const Outcome& outcome : drained(std::move(futures))) EXPECT_TRUE(outcome);
    EXPECT_EQ(balance(), 9);
}

TEST_F(Lanes, options_that_cannot_work_are_refused) {
    EXPECT_THROW(make(hooked, {.queue_max = 0}), ConfigError);
    EXPECT_THROW(make(hooked, {.batch_max = 0}), ConfigError);
    EXPECT_THROW(make(hooked, {.threads = 0}), ConfigError);
    EXPECT_THROW(static_cast<void>(bank.submit<Account>("", Deposit{1})), InvalidError);
    EXPECT_THROW(static_cast<void>(bank.submit<Account>("a", Deposit{1}, {.command_id = std::string(201, 'x')})),
                 InvalidError);
}

TEST_F(Lanes, what_was_rejected_beside_commands_in_doubt_is_certain_to_have_done_nothing) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    hooked->after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        for (auto& answer : answers) answer = Failure{ErrorKind::unavailable, true, "no answer"};
        hooked->before_read = [] { throw UnavailableError("no answer"); };
    };
    std::vector<std::future<Outcome>> futures;
    futures.push_back(bank.submit<Account>("alice", Deposit{1}));
    futures.push_back(bank.submit<Account>("alice", Withdraw{1000}));
    later.drain();
    EXPECT_THROW(static_cast<void>(futures[0].get()), InDoubtError);
    EXPECT_THROW(static_cast<void>(futures[1].get()), UnavailableError);
}

TEST_F(Lanes, what_the_executor_never_ran_fails_with_the_application) {
    std::future<Outcome> never;
    {
        Application mortal = make(hooked, {});
        never = mortal.submit<Account>("alice", Deposit{1});
        later.forget();
    }
    EXPECT_THROW(static_cast<void>(never.get()), UnavailableError);
    EXPECT_EQ(balance(), 0);
}

TEST_F(Lanes, a_command_whose_lock_is_gone_fails_alone) {
    // The lock's heartbeat needs a clock that does not run ahead.
    Application timely{hooked, {.sweep = false, .executor = &later}};
    Lock lock = timely.locks().acquire("l");
    std::vector<std::future<Outcome>> futures;
    futures.push_back(timely.submit<Account>("alice", Deposit{1}));
    futures.push_back(timely.submit<Account>("alice", Deposit{2}, {.fenced_by = &lock}));
    futures.push_back(timely.submit<Account>("alice", Deposit{4}));
    lock.release();
    later.drain();
    EXPECT_TRUE(futures[0].get());
    EXPECT_THROW(static_cast<void>(futures[1].get()), LeaseLostError);
    EXPECT_TRUE(futures[2].get());
    EXPECT_EQ(balance(), 5);
}

// ---- with threads of their own

TEST(LaneThreads, the_application_waits_for_what_was_submitted) {
    const auto store = open("memory:");
    std::vector<std::future<Outcome>> futures;
    {
        Application bank{store, {.sweep = false}};
        for (int i = 0; i < 200; ++i) futures.push_back(bank.submit<Account>(std::to_string(i % 7), Deposit{1}));
    }
    for (auto& future : futures) EXPECT_TRUE(future.get());
}

/// Wakes whoever sleeps at once, called or not.
class Restless final : public Clock {
  public:
    Time now() override { return Clock::system().now(); }
    SteadyTime steady_now() override { return Clock::system().steady_now(); }
    void sleep_for(Duration, std::stop_token) override { std::this_thread::yield(); }
};

TEST(LaneThreads, who_wakes_at_the_wrong_moment_leads_or_waits_but_is_not_lost) {
    Restless clock;
    Application bank{open("memory:"), {.sweep = false, .lanes = {.batch_max = 3}, .runtime = {.clock = clock}}};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 500; ++i) EXPECT_TRUE(bank.execute<Account>("hot", Deposit{1}));
            });
        }
    }
    EXPECT_EQ(bank.load<Account>("hot").state.balance, 4000);
}

TEST(LaneThreads, many_callers_and_submitters_of_two_processes_lose_nothing) {
    const auto store = open("memory:");
    Application one{store, {.sweep = false, .lanes = {.queue_max = 4}}};
    Application two{store, {.sweep = false}};
    std::atomic<std::int64_t> deposited{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 6; ++t) {
            threads.emplace_back([&, t] {
                Application& bank = t % 2 == 0 ? one : two;
                std::vector<std::future<Outcome>> futures;
                for (int i = 0; i < 100; ++i) {
                    if (t < 3) {
                        if (bank.execute<Account>("hot", Deposit{i})) deposited += i;
                    } else {
                        futures.push_back(bank.submit<Account>("hot", Deposit{i}));
                    }
                    if (i % 10 == 0) {
                        const Outcome moved = bank.transact([&](Transaction& tx) {
                            tx.execute<Account>("hot", Deposit{1});
                            tx.execute<Account>("cold", Deposit{1});
                        });
                        if (moved) deposited += 1;
                    }
                }
                for (int i = 0; i < static_cast<int>(futures.size()); ++i) {
                    if (futures[static_cast<std::size_t>(i)].get()) deposited += i;
                }
            });
        }
    }
    EXPECT_EQ(one.load<Account>("hot").state.balance, deposited);
    EXPECT_EQ(two.load<Account>("cold").state.balance, 60);
    EXPECT_EQ(one.lane_metrics().commands + two.lane_metrics().commands, 600u);
}

}  // namespace
}  // namespace varve
