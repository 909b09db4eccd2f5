#include "commands/follower.h"
#include "projections/following.h"
#include "support/dying_store.h"
#include "support/hooked_store.h"
#include "support/unordered_store.h"

#include <varve/commands/follower_status.h>
#include <varve/events/event_store.h>
#include <varve/locks/locks.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/passing_store.h>
#include <varve/testing/recorded_log.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using namespace std::chrono_literals;

struct Seen {
    static constexpr std::string_view table = "seen";
    std::string aggregate, command;
    std::int64_t version = 0, index = 0;
};
struct Watch {
    static constexpr std::string_view name = "watch";
    void operator()(const Deposited&, ProjectionContext& context) const {
        context.rows<Seen>().put(std::to_string(context.position()) + "/" + std::to_string(context.index()),
                                 {std::string{context.aggregate_id()}, context.metadata().command_id, context.version(),
                                  static_cast<std::int64_t>(context.index())});
    }
};

TEST_F(Following, takes_what_was_there_before_and_then_each_event_as_it_is_committed) {
    Application bank{store, options()};
    Receipt last;
    for (int i = 0; i < 20; ++i) last = deposit(bank, "alice", 5);
    bank.follow<Account>(SumUp{});
    ASSERT_TRUE(bank.wait_for<SumUp>(last, patience));
    EXPECT_EQ(turnover(bank), (Turnover{100, 20}));

    ASSERT_TRUE(bank.wait_for<SumUp>(deposit(bank, "bob", 7), patience));
    EXPECT_EQ(turnover(bank), (Turnover{107, 21}));
    EXPECT_EQ(turnover(bank, "bob"), (Turnover{7, 1}));
    EXPECT_EQ(status(bank).events, 21);
    EXPECT_EQ(log.text(), "");
}

TEST_F(Following, works_as_well_where_the_store_keeps_no_order_of_changes) {
    store = std::make_shared<UnorderedStore>(store);
    Application bank{store, options()};
    Application other{store, options()};
    Receipt last;
    for (int i = 0; i < 50; ++i) last = deposit(bank, "a" + std::to_string(i % 7), 1);
    bank.follow<Account>(SumUp{});
    ASSERT_TRUE(bank.wait_for<SumUp>(last, patience));
    EXPECT_EQ(turnover(bank), (Turnover{50, 50}));
    other.follow<Account>(SumUp{});
    for (int i = 51; i <= 60; ++i) {
        Application& one = i % 2 == 0 ? bank : other;
        ASSERT_TRUE(one.wait_for<SumUp>(deposit(one, "alice", 1), patience));
        EXPECT_EQ(turnover(bank), (Turnover{i, i}));
    }
    deposit(other, "alice", 1);
    ASSERT_TRUE(bank.wait_for<SumUp>({}, patience)) << "all that was acknowledged, wherever";
    EXPECT_EQ(turnover(bank), (Turnover{61, 61}));
    EXPECT_EQ(status(bank).position, status(bank).end);
    EXPECT_EQ(log.text(), "");
}

TEST_F(Following, sees_what_another_application_announces_in_shards_that_it_has_added) {
    store = std::make_shared<UnorderedStore>(store);
    Application bank{store, options()};
    bank.follow<Account>(SumUp{});
    ASSERT_TRUE(bank.wait_for<SumUp>(deposit(bank, "alice", 1), patience));
    ApplicationOptions raising = options();
    raising.sweep = false;
    raising.feed_shards = 64;
    Application other{store, raising};
    for (int i = 2; i <= 20; ++i) {
        ASSERT_TRUE(bank.wait_for<SumUp>(deposit(other, "alice", 1), patience));
        EXPECT_EQ(turnover(bank), (Turnover{i, i}));
    }
    EXPECT_EQ(log.text(), "");
}

TEST_F(Following, goes_on_where_it_was_when_the_application_begins_again) {
    for (int i = 1; i <= 5; ++i) {
        Application bank{store, options()};
        bank.follow<Account>(SumUp{});
        ASSERT_TRUE(bank.wait_for<SumUp>(deposit(bank, "alice", i), patience));
        EXPECT_EQ(turnover(bank).deposits, i);
    }
}

TEST_F(Following, is_done_by_one_of_several_applications_and_by_another_one_when_that_ends) {
    Application first{store, options()};
    auto second = std::make_unique<Application>(store, options());
    second->follow<Account>(SumUp{});
    ASSERT_TRUE(second->wait_for<SumUp>(deposit(*second, "alice", 1), patience));
    first.follow<Account>(SumUp{});
    ASSERT_TRUE(first.wait_for<SumUp>(deposit(first, "alice", 1), patience));
    EXPECT_EQ(status(first).state, FollowerStatus::State::elsewhere);
    EXPECT_EQ(status(first).events, 2);

    second.reset();
    ASSERT_TRUE(first.wait_for<SumUp>(deposit(first, "alice", 1), patience));
    EXPECT_EQ(turnover(first), (Turnover{3, 3}));
}

TEST_F(Following, costs_whoever_does_not_have_it_one_query_for_each_interval_and_no_write) {
    const auto counting = std::make_shared<testing::CountingStore>(store);
    ApplicationOptions without_sweeper = options();
    without_sweeper.sweep = false;
    Application first{store, options()};
    Application second{counting, without_sweeper};
    std::atomic<int> idle = 0;
    const auto sums_up = [] {
        return detail::consumer_of("turnover", {detail::aggregate_projection<Account>(SumUp{})}, {.poll_interval = 7s});
    };
    detail::Follower owner{first, idle, sums_up()};
    detail::Follower other{second, idle, sums_up()};
    EXPECT_EQ(owner.turn({}), 7s);
    counting->reset();
    EXPECT_EQ(other.turn({}), 7s);
    EXPECT_EQ(counting->counts().queries, 1u);
    EXPECT_EQ(counting->counts().round_trips(), 1u);
    EXPECT_EQ(other.status().state, FollowerStatus::State::elsewhere);

    owner.end();
    deposit(first, "alice", 5);
    EXPECT_EQ(other.turn({}), 7s);
    EXPECT_EQ(other.status().state, FollowerStatus::State::live);
    EXPECT_EQ(turnover(first), (Turnover{5, 1}));
}

TEST_F(Following, is_waited_for_from_elsewhere_also_where_the_last_events_are_not_its_own) {
    Application owner{store, options()};
    owner.subscribe("openings", [](auto) {}, {.types = {"Opened"}});
    const Receipt opened = owner.execute<Account>("alice", Open{"Alice"}).value();
    ASSERT_TRUE(owner.wait_for("openings", opened, patience));
    Application other{store, options()};
    other.subscribe("openings", [](auto) {}, {.types = {"Opened"}});
    EXPECT_TRUE(other.wait_for("openings", deposit(other, "alice", 1), patience));
    EXPECT_EQ(status(other).state, FollowerStatus::State::elsewhere);
    EXPECT_LT(status(other).position, status(other).end) << "nothing was saved for that";
}

TEST_F(Following, sees_both_sides_of_a_transaction_once_each) {
    auto options = this->options();
    options.transactions.strategy = transactions::Strategy::protocol;
    Application bank{store, options};
    bank.follow<Account>(SumUp{});
    Receipt last;
    for (int i = 0; i < 50; ++i) {
        last = bank.transact([&](Transaction& tx) {
                       tx.execute<Account>("alice", Deposit{1});
                       tx.execute<Account>("bob", Deposit{1});
                   })
                   .value();
    }
    ASSERT_TRUE(bank.wait_for<SumUp>(last, patience));
    EXPECT_EQ(turnover(bank), (Turnover{100, 100}));
}

TEST_F(Following, knows_where_each_event_is) {
    Application bank{store, options()};
    bank.append<Account>("alice", {Deposited{1}, Deposited{2}}).value();
    const Receipt last = bank.execute<Account>("alice", Deposit{3}, {.command_id = "c-1"}).value();
    bank.follow<Account>(Watch{});
    ASSERT_TRUE(bank.wait_for<Watch>(last, patience));
    std::vector<std::string> seen;
    for (const auto& row : bank.rows<Seen>().all()) {
        seen.push_back(row.value.aggregate + "/" + std::to_string(row.value.version) + "/" +
                       std::to_string(row.value.index) + row.value.command);
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, (std::vector<std::string>{"alice/1/0", "alice/1/1", "alice/2/0c-1"}));
}

/// Takes few writes at once.
struct Narrow final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Capabilities capabilities() const override {
        store::Capabilities narrow = inner().capabilities();
        narrow.atomic_writes_max = 20;
        return narrow;
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        largest = std::max(largest.load(), writes.size());
        return inner().write_atomically(writes);
    }
    std::atomic<std::size_t> largest = 0;
};

TEST_F(Following, takes_no_more_rows_together_than_the_store_writes_at_once) {
    const auto narrow = std::make_shared<Narrow>(store);
    Application bank{narrow, options()};
    Receipt last;
    constexpr int accounts = 200;
    for (int i = 0; i < accounts; ++i) last = deposit(bank, "a" + std::to_string(i), 1);
    bank.follow<Account>(SumUp{}, {.batch_max = 5000});
    ASSERT_TRUE(bank.wait_for<SumUp>(last, patience));
    EXPECT_EQ(turnover(bank), (Turnover{accounts, accounts}));
    EXPECT_GT(narrow->largest, 10u);
    EXPECT_LE(narrow->largest, 20u);
}

/// In a time that stands still.
struct FollowingByHand : Following {
    testing::ManualClock clock;

    ApplicationOptions options() {
        return {.sweep = false, .locks = {.time_to_live = 100h}, .runtime = {.clock = clock, .log = log}};
    }
    static void catch_up(Application& bank, const Receipt& last) {
        while (!bank.wait_for<SumUp>(last, 0s)) std::this_thread::yield();
    }
};

/// Follows with one row for each stream.
detail::Consumer rows_of_streams(std::size_t batch_max) {
    return {.name = "deposits",
            .filter = {},
            .options = {.batch_max = batch_max},
            .project =
                [](Transaction& tx, const RecordedEvent& event) {
                    const auto rows = tx.rows<Turnover>();
                    Turnover row = rows.get(event.stream).value_or(Turnover{});
                    ++row.deposits;
                    rows.put(event.stream, row);
                },
            .handle = {}};
}

TEST_F(FollowingByHand, reads_rows_together_that_came_in_the_batches_before) {
    Application bank{store, options()};
    const auto counting = std::make_shared<testing::CountingStore>(store);
    Application following{counting, options()};
    std::atomic<int> idle = 0;
    detail::Follower follower{following, idle, rows_of_streams(500)};
    std::vector<std::uint64_t> round_trips;
    for (int batch = 0; batch < 4; ++batch) {
        for (int i = 0; i < 30; ++i) deposit(bank, "a" + std::to_string(i), 1);
        counting->reset();
        follower.turn({});
        round_trips.push_back(counting->counts().round_trips());
    }
    EXPECT_GT(round_trips[0], 30u);
    for (const int later : {1, 2, 3})
        EXPECT_EQ(round_trips[later], 4u) << "its events, its rows, its commit, and that there is nothing more";
    EXPECT_EQ(turnover(bank, "account-a7"), (Turnover{0, 4}));
}

TEST_F(FollowingByHand, reads_events_once_also_if_their_rows_fill_several_transactions) {
    const auto counting = std::make_shared<testing::CountingStore>(std::make_shared<Narrow>(store));
    Application bank{counting, options()};
    for (int i = 0; i < 200; ++i) deposit(bank, "a" + std::to_string(i), 1);
    std::atomic<int> idle = 0;
    detail::Follower follower{bank, idle, rows_of_streams(5000)};
    counting->reset();
    follower.turn({});
    EXPECT_GT(counting->counts().atomic_batches, 10u);
    EXPECT_LE(counting->counts().change_reads, 4u) << "where they end, all of them, and that there is nothing more";
    EXPECT_EQ(turnover(bank, "account-a199"), (Turnover{0, 1}));
    EXPECT_EQ(follower.status().events, 200);
}

/// Lets somebody else in where a follower has seen that it has not been there, and asks where the events end.
struct WhileItBegins final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Position last_change(const std::string& table) override {
        if (const auto others = std::exchange(in_between, nullptr)) others();
        return inner().last_change(table);
    }
    std::function<void()> in_between;
};

TEST_F(FollowingByHand, who_begins_at_the_end_leaves_out_nothing_that_another_one_would_not_have_left_out) {
    Inbox inbox;
    const auto news = [&] {
        return detail::Consumer{.name = "news",
                                .filter = {},
                                .start_at = StartAt::end,
                                .options = {},
                                .project = {},
                                .handle = std::ref(inbox)};
    };
    const auto slow = std::make_shared<WhileItBegins>(store);
    Application first{store, options()};
    Application second{slow, options()};
    std::atomic<int> idle = 0;
    detail::Follower late{second, idle, news()};
    slow->in_between = [&] {
        first.locks().evict("$follower-news", first.locks().inspect("$follower-news").holder.ticket);
        detail::Follower early{first, idle, news()};
        early.turn({});
        deposit(first, "alice", 1);
    };
    late.turn({});
    first.locks().evict("$follower-news", first.locks().inspect("$follower-news").holder.ticket);
    detail::Follower heir{first, idle, news()};
    heir.turn({});
    EXPECT_EQ(inbox.positions().size(), 1u) << "it was there when the first one had begun";
}

TEST_F(FollowingByHand, says_how_fast_it_is_and_who_has_it) {
    Application owner{store, options()};
    owner.follow<Account>(SumUp{});
    Receipt last;
    for (int i = 0; i < 3; ++i) last = deposit(owner, "alice", 1);
    catch_up(owner, last);
    clock.advance(2s);
    EXPECT_EQ(status(owner).events_per_second, 1.5);
    EXPECT_EQ(status(owner).lag, 0s);
    EXPECT_NE(status(owner).owner, "");

    Application other{store, options()};
    other.follow<Account>(SumUp{});
    EXPECT_EQ(status(other).events_per_second, std::nullopt);
    EXPECT_EQ(status(other).lag, 0s);
    EXPECT_EQ(status(other).owner, status(owner).owner);

    clock.advance(1h);
    EXPECT_EQ(status(owner).events_per_second, 0);
    catch_up(owner, deposit(owner, "alice", 1));
    clock.advance(5s);
    EXPECT_EQ(status(owner).events_per_second, 0.2) << "what it did before it was idle does not count";
}

// --- what goes wrong ---

struct FailAt13 {
    static constexpr std::string_view name = "unlucky";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == 13) throw std::runtime_error("13 is not for us");
        context.rows<Balance>().update(context.aggregate_id(), [&](Balance& row) { row.cents += e.cents; });
    }
};

TEST_F(Following, stops_at_an_event_that_it_cannot_take_says_which_and_keeps_what_came_before) {
    Application bank{store, options()};
    for (const std::int64_t cents : {1, 2, 13, 4}) deposit(bank, "alice", cents);
    bank.follow<Account>(FailAt13{});
    bank.follow<Account>(SumUp{});  // and the others go on
    const FollowerStatus stopped = wait_until_stopped(bank, log);
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{3});
    EXPECT_EQ(stopped.events, 2);
    EXPECT_EQ(stopped.error, log.wait_for("has stopped"));
    EXPECT_NE(stopped.error.find("the follower 'unlucky' has stopped at Deposited, version 3 of stream "
                                 "'account-alice': 13 is not for us"),
              std::string::npos)
        << stopped.error;
    const Receipt next = deposit(bank, "alice", 5);
    EXPECT_TRUE(bank.wait_for<SumUp>(next, patience));
    EXPECT_EQ(turnover(bank), (Turnover{25, 5}));
    EXPECT_FALSE(bank.wait_for<FailAt13>(next, patience)) << "and nobody waits for that";
}

TEST_F(FollowingByHand, says_how_old_the_last_event_is_that_it_has_taken_where_there_is_more) {
    Application bank{store, options()};
    deposit(bank, "alice", 1);
    clock.advance(10s);
    deposit(bank, "alice", 13);
    {
        const Lock lock = bank.locks().acquire("$follower-unlucky");
        bank.follow<Account>(FailAt13{});
        EXPECT_EQ(status(bank).lag, std::nullopt) << "it has taken none";
        EXPECT_EQ(status(bank).state, FollowerStatus::State::elsewhere);
        bank.unfollow("unlucky");
    }
    bank.follow<Account>(FailAt13{});
    EXPECT_EQ(wait_until_stopped(bank, log).lag, 10s);
    clock.advance(20s);
    EXPECT_EQ(status(bank).lag, 30s);
    EXPECT_EQ(status(bank).events_per_second, std::nullopt);
    while (!status(bank).owner.empty()) std::this_thread::yield();

    Application other{store, options()};
    const Lock lock = other.locks().acquire("$follower-unlucky");
    other.follow<Account>(FailAt13{});
    EXPECT_EQ(status(other).lag, 30s) << "also where another process has it";
}

TEST_F(FollowingInItsOwnTime, each_event_takes_effect_once_whenever_its_owner_dies) {
    constexpr int deposits = 12;
    const auto run = [&](int dies_at, std::uint64_t applies) {
        store = open("memory:");
        Receipt last;
        {
            Application bank{store, options()};
            for (int i = 0; i < deposits; ++i) last = deposit(bank, i % 2 == 0 ? "alice" : "bob", 1);
        }
        const auto dying = std::make_shared<DyingStore>(store, dies_at, applies);
        if (!dies_before(deposits, dying, options(), {.batch_max = 5})) return false;
        Application heir{store, options()};
        heir.follow<Account>(SumUp{});
        catch_up(heir, last);
        EXPECT_EQ(turnover(heir), (Turnover{deposits, deposits})) << "died at " << dies_at << ", applied " << applies;
        EXPECT_EQ(turnover(heir, "bob").cents, deposits / 2);
        return !HasFailure();
    };
    int requests = 1;
    while (run(requests, 0) && run(requests, ~std::uint64_t{0})) ++requests;
    EXPECT_GT(requests, 15) << "it has died at so many requests";
}

TEST_F(FollowingInItsOwnTime, each_event_takes_effect_once_where_the_lock_keeps_changing_hands) {
    Application first{store, options()};
    Application second{store, options()};
    first.follow<Account>(SumUp{}, {.batch_max = 3});
    second.follow<Account>(SumUp{}, {.batch_max = 3});
    Receipt last = deposit(first, "alice", 1);
    catch_up(first, last);
    int evicted = 0;
    for (int i = 0; i < 300; ++i) {
        last = deposit(i % 2 == 0 ? first : second, "alice", 1);
        if (i % 10 != 0) continue;
        locks::Ticket holder = 0;
        while (holder == 0) holder = first.locks().inspect("$follower-turnover").holder.ticket;
        if (first.locks().evict("$follower-turnover", holder)) ++evicted;
    }
    catch_up(first, last);
    EXPECT_EQ(turnover(first), (Turnover{301, 301}));
    EXPECT_GT(evicted, 0);
}

TEST_F(FollowingInItsOwnTime, goes_on_by_itself_after_an_outage) {
    std::atomic<bool> is_away = false;
    const auto hooked = std::make_shared<HookedStore>(store);
    Application bank{hooked, options()};
    const Receipt last = deposit(bank, "alice", 1);
    hooked->before_read = [&, test = std::this_thread::get_id()] {
        if (is_away && std::this_thread::get_id() != test) throw UnavailableError("the store is away");
    };
    is_away = true;
    bank.follow<Account>(SumUp{});
    log.wait_for("the follower 'turnover' will try again: the store is away");
    is_away = false;
    catch_up(bank, last);
    EXPECT_EQ(turnover(bank), (Turnover{1, 1}));
}

/// The first query that would find a bell fails.
struct BellsAreAway final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Page query(const store::Query& query) override {
        if (query.partition == "$sequencer") ++asked_for_the_lock;
        store::Page page = inner().query(query);
        if (query.table == "feed_bells" && !page.records.empty() && fails.exchange(false))
            throw UnavailableError("the bells are away");
        return page;
    }
    std::atomic<bool> fails = true;
    std::atomic<int> asked_for_the_lock = 0;
};

TEST_F(Following, goes_on_soon_after_an_outage_however_seldom_its_application_sweeps) {
    const auto bells = std::make_shared<BellsAreAway>(std::make_shared<UnorderedStore>(store));
    ApplicationOptions seldom = options();
    seldom.sweep_interval = 100h;
    Application bank{bells, seldom};
    bank.follow<Account>(SumUp{});
    EXPECT_TRUE(bank.wait_for<SumUp>(deposit(bank, "alice", 1), patience));
    EXPECT_FALSE(bells->fails);
}

TEST_F(FollowingByHand, who_does_not_put_events_in_order_asks_for_it_once_a_second_whatever_it_commits) {
    const auto unordered = std::make_shared<UnorderedStore>(store);
    Application other{unordered, options()};
    const Lock sequencer = other.locks().acquire("$sequencer");
    const auto bells = std::make_shared<BellsAreAway>(unordered);
    ApplicationOptions sweeping = options();
    sweeping.sweep = true;
    Application bank{bells, sweeping};
    bank.follow<Account>(SumUp{});
    for (int i = 0; i < 200; ++i) deposit(bank, "alice", 1);
    const auto asked_again = [&](int times) {
        while (bells->asked_for_the_lock < times) std::this_thread::yield();
        return bells->asked_for_the_lock.load();
    };
    EXPECT_EQ(asked_again(1), 1);
    clock.wait_for_sleepers(6);  // locks of both, and who sweeps, sequences, keeps and follows
    clock.advance(1s);
    EXPECT_EQ(asked_again(2), 2);
}

/// Fails from some position on.
struct EndsEarly final : testing::PassingStore {
    using PassingStore::PassingStore;
    std::vector<store::Change> changes(const std::string& table, store::Position after, std::size_t limit) override {
        if (table == "events" && after >= 15) throw UnavailableError("it is away");
        return inner().changes(table, after, limit);
    }
};

TEST_F(Following, notes_what_it_has_passed_by_on_a_long_way_too) {
    {
        Application bank{store, options()};
        for (int i = 0; i < 30; ++i) deposit(bank, "alice", 1);
        Application interrupted{std::make_shared<EndsEarly>(store), options()};
        interrupted.subscribe("rare", [](auto) {}, {.aggregates = {"rare"}, .follow = {.batch_max = 2}});
        log.wait_for("the follower 'rare' will try again: it is away");
    }
    Application bank{store, options()};
    const Lock elsewhere = bank.locks().acquire("$follower-rare");
    bank.subscribe("rare", [](auto) {}, {.aggregates = {"rare"}, .follow = {.batch_max = 2}});
    EXPECT_GE(status(bank).position, 10u);
}

/// Calls somebody, once, when it is asked where the events end.
struct SlowEnd final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Position last_change(const std::string& table) override {
        if (table == "events" && is_armed.exchange(false)) meanwhile();
        return inner().last_change(table);
    }
    std::atomic<bool> is_armed = false;
    std::function<void()> meanwhile;  // set before it is armed
};

TEST_F(Following, nobody_waits_for_who_begins_to_follow) {
    const auto slow = std::make_shared<SlowEnd>(store);
    Application bank{slow, options()};
    bank.follow<Account>(SumUp{}, {.poll_interval = 1000h});
    ASSERT_TRUE(bank.wait_for<SumUp>(deposit(bank, "alice", 1), patience));
    bool has_committed = false;
    std::future<Receipt> commits;
    slow->meanwhile = [&] {
        commits = std::async(std::launch::async, [&] { return deposit(bank, "alice", 1); });
        has_committed = commits.wait_for(patience) == std::future_status::ready;
    };
    slow->is_armed = true;
    bank.subscribe("second", [](auto) {}, {.after = 1});
    EXPECT_TRUE(has_committed);
}

// --- what is refused ---

struct SendLetter {
    std::string to;
};
struct Posts {
    static constexpr std::string_view name = "posts";
    void operator()(const Deposited&, ProjectionContext& context) const { context.effect(SendLetter{"alice"}); }
};

TEST_F(Following, has_no_effects_and_says_so) {
    Application bank{store, options()};
    deposit(bank, "alice", 1);
    bank.follow<Account>(Posts{});
    EXPECT_NE(wait_until_stopped(bank, log).error.find("a projection that follows has no effects"), std::string::npos);
}

TEST_F(Following, stops_where_a_slot_cannot_be_read_and_says_so) {
    Application bank{store, options()};
    const Receipt last = deposit(bank, "alice", 1);
    bank.follow<Account>(SumUp{});
    ASSERT_TRUE(bank.wait_for<SumUp>(last, Duration::max()));
    const store::Write foreign{{.table = "events", .partition = "account-bob", .sort = std::int64_t{1}},
                               store::Put{{{"state", "unheard of"}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&foreign, 1}).front()));
    const std::string error = wait_until_stopped(bank, log).error;
    EXPECT_NE(error.find("the follower 'turnover' has stopped where it cannot read on: "), std::string::npos) << error;
    EXPECT_NE(error.find("account-bob/1"), std::string::npos) << error;
    EXPECT_EQ(turnover(bank), (Turnover{1, 1}));
}

TEST_F(Following, stops_where_its_own_table_is_somebody_elses) {
    store->ensure_table({"followers", "name", "part", store::SortType::integer});
    Application bank{store, options()};
    bank.follow<Account>(SumUp{});
    EXPECT_NE(log.wait_for("has stopped where it cannot read on").find("'followers'"), std::string::npos);
}

TEST_F(Following, refuses_what_cannot_work) {
    Application bank{store, options()};
    const auto nothing = [](auto) {};
    bank.follow<Account>(SumUp{});
    EXPECT_EQ(refusal<ConfigError>([&] { bank.follow<Account>(SumUp{}); }),
              "there is a follower 'turnover' in this application already, and both would share one checkpoint; give "
              "the second one a name of its own");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("", nothing); }),
              "the follower '' cannot begin: a name has 1 to 200 bytes");
    for (const std::string_view name : {std::string_view{"a\0b", 3}, std::string_view{"\xff"}}) {
        EXPECT_NE(refusal<ConfigError>([&] {
                      bank.subscribe(std::string{name}, nothing);
                  }).find("its name is not UTF-8 without NUL"),
                  std::string::npos);
    }
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", nothing, {.follow = {.batch_max = 0}}); }),
              "the follower 's' cannot begin: FollowOptions::batch_max is 0, so it would never take anything");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", nothing, {.follow = {.poll_interval = 0s}}); }),
              "the follower 's' cannot begin: FollowOptions::poll_interval is 0 s, so it would ask the store without a "
              "pause");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", nothing, {.start_at = StartAt::end, .after = 1}); }),
              "the follower 's' cannot begin: it is to start at the end, and after a position as well");
    EXPECT_EQ(refusal<ConfigError>([&] {
                  bank.subscribe("s", nothing,
                                 {.ephemeral = true, .follow = {.on_poison = FollowOptions::OnPoison::park}});
              }),
              "the follower 's' cannot begin: it is ephemeral, so there is nowhere to note which streams are set "
              "aside");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", {}); }), "the subscription 's' has no handler");
    EXPECT_NE(refusal<InvalidError>([&] {
                  static_cast<void>(bank.wait_for("s", Receipt{}, 1s));
              }).find("there is no follower 's' in this application"),
              std::string::npos);
    EXPECT_EQ(refusal<InvalidError>([&] { bank.unfollow("s"); }), "there is no follower 's' in this application");
    EXPECT_NE(refusal<ConfigError>([&] { bank.project<Account>(ProjectBalance{}); }).find("call project() before"),
              std::string::npos);
}

TEST_F(Following, needs_a_store_where_commits_are_announced_unless_it_keeps_an_order_of_changes) {
    Application bank{std::make_shared<UnorderedStore>(store), {.feed = false}};
    EXPECT_NE(refusal<ConfigError>([&] { bank.follow<Account>(SumUp{}); }).find("set ApplicationOptions::feed to true"),
              std::string::npos);
}

/// The table of the framework, as another program sees it.
struct StoredCheckpoint {
    static constexpr std::string_view table = "followers";
    std::int64_t position = 0;
    std::int64_t events = 0;
    std::string error;
};

TEST_F(Following, keeps_its_checkpoints_in_a_table_of_its_own) {
    Application bank{store, options()};
    EXPECT_EQ(refusal<InvalidError>([&] { static_cast<void>(bank.rows<StoredCheckpoint>()); }),
              "the name 'followers' is the framework's own; call the read model's table something else");
}

// --- subscriptions ---

TEST_F(Following, a_subscription_gets_events_in_order_with_their_positions) {
    Inbox inbox;  // outlives whoever calls it
    Application bank{store, options()};
    bank.execute<Account>("alice", Open{"Alice"}).value();
    bank.subscribe("inbox", std::ref(inbox));
    bank.append<Account>("alice", {Deposited{1}, Withdrawn{1}}).value();
    bank.execute<Account>("bob", Open{"Bob"}).value();
    EXPECT_EQ(inbox.wait_for(4), (Lines{"account-alice/1 Opened", "account-alice/2 Deposited",
                                        "account-alice/2 Withdrawn", "account-bob/1 Opened"}));
    const std::vector<std::uint64_t> positions = inbox.positions();
    EXPECT_TRUE(std::ranges::is_sorted(positions));
    EXPECT_EQ(positions[1], positions[2]);
    EXPECT_LT(positions[2], positions[3]);
}

TEST_F(Following, a_subscription_gets_what_it_asked_for) {
    Inbox deposits, others, later;
    Application bank{store, options()};
    bank.execute<Account>("early", Open{"Early"}).value();
    static_cast<void>(bank.events().append("other-1", {{"Deposited", 1, "{}"}}, Expected::none()));
    bank.subscribe("deposits", std::ref(deposits), {.types = {"Deposited"}});
    bank.subscribe("others", std::ref(others), {.aggregates = {"other"}});
    bank.subscribe("later", std::ref(later), {.start_at = StartAt::end});
    while (std::ranges::any_of(bank.followers(),
                               [](const auto& one) { return one.state != FollowerStatus::State::live; })) {
        std::this_thread::yield();
    }
    bank.execute<Account>("alice", Open{"Alice"}).value();
    deposit(bank, "alice", 1);
    EXPECT_EQ(deposits.wait_for(2), (Lines{"other-1/1 Deposited", "account-alice/2 Deposited"}));
    EXPECT_EQ(later.wait_for(2), (Lines{"account-alice/1 Opened", "account-alice/2 Deposited"}));
    EXPECT_EQ(others.wait_for(1), (Lines{"other-1/1 Deposited"}));
}

TEST_F(Following, an_ephemeral_subscription_keeps_no_place_and_shares_with_nobody) {
    Inbox first, second, later;
    Application bank{store, options()};
    Application other{store, options()};
    for (const std::int64_t cents : {1L, 2L, 3L}) deposit(bank, "alice", cents);
    bank.subscribe("tail", std::ref(first), {.ephemeral = true});
    other.subscribe("tail", std::ref(second), {.ephemeral = true});
    first.wait_for(3);
    EXPECT_EQ(second.wait_for(3).size(), 3u);
    bank.unfollow("tail");
    EXPECT_THROW(static_cast<void>(store->scan({.table = "followers"})), InvalidError) << "there is no such table";
    other.unfollow("tail");

    other.subscribe("tail", std::ref(later), {.after = second.positions().at(1), .ephemeral = true});
    EXPECT_EQ(later.wait_for(1), Lines{"account-alice/3 Deposited"});
    deposit(bank, "alice", 4);
    EXPECT_EQ(later.wait_for(2), (Lines{"account-alice/3 Deposited", "account-alice/4 Deposited"}));
    EXPECT_EQ(status(other).owner, "");
    EXPECT_EQ(log.text(), "");
}

TEST_F(Following, a_subscription_may_begin_after_a_position_and_goes_on_from_its_own_place_after_that) {
    Inbox all, some;
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 2L, 3L}) deposit(bank, "alice", cents);
    bank.subscribe("all", std::ref(all));
    all.wait_for(3);
    const SubscribeOptions after{.after = all.positions().at(1)};
    bank.subscribe("some", std::ref(some), after);
    some.wait_for(1);
    ASSERT_TRUE(bank.wait_for("some", Receipt{}, patience));
    bank.unfollow("some");
    bank.subscribe("some", std::ref(some), after);
    ASSERT_TRUE(bank.wait_for("some", deposit(bank, "alice", 4), patience));
    EXPECT_EQ(some.wait_for(2), (Lines{"account-alice/3 Deposited", "account-alice/4 Deposited"}));

    EXPECT_NE(refusal<ConfigError>([&] {
                  bank.subscribe("none", std::ref(some), {.after = 1'000'000});
              }).find("it is to take what comes after 1000000, and the events end at "),
              std::string::npos);
}

TEST_F(Following, a_subscription_that_began_at_the_end_of_no_events_gets_the_first_one_also_if_it_was_away) {
    Application bank{store, options()};
    Inbox inbox;
    bank.subscribe("news", std::ref(inbox), {.start_at = StartAt::end});
    while (status(bank).state != FollowerStatus::State::live) std::this_thread::yield();
    bank.unfollow("news");
    deposit(bank, "alice", 1);
    bank.subscribe("news", std::ref(inbox), {.start_at = StartAt::end});
    EXPECT_EQ(inbox.wait_for(1), (Lines{"account-alice/1 Deposited"}));
    bank.unfollow("news");
}

TEST_F(Following, a_subscription_ends_when_its_batch_is_done_and_goes_on_there) {
    Inbox inbox;
    Application bank{store, options()};
    for (int i = 0; i < 3; ++i) deposit(bank, "alice", 1);
    bank.subscribe("inbox", std::ref(inbox));
    inbox.wait_for(3);
    bank.unfollow("inbox");
    EXPECT_TRUE(bank.followers().empty());
    deposit(bank, "alice", 1);
    bank.subscribe("inbox", std::ref(inbox));
    EXPECT_EQ(inbox.wait_for(4).back(), "account-alice/4 Deposited");
    EXPECT_EQ(inbox.wait_for(4).size(), 4u);
}

TEST_F(Following, a_subscription_that_cannot_take_an_event_stops_there_and_gets_it_again_when_it_is_begun_again) {
    Application bank{store, options()};
    for (int i = 0; i < 5; ++i) deposit(bank, "alice", 1);
    Lines got;
    bool broken = true;  // written while nobody follows
    const auto handle = [&](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            if (broken && event.version == 4) throw std::runtime_error("the index is full");
        }
        for (const RecordedEvent& event : events) got.push_back(std::to_string(event.version));
    };
    bank.subscribe("index", handle);
    const FollowerStatus stopped = wait_until_stopped(bank, log);
    EXPECT_NE(stopped.error.find("at Deposited, version 4 of stream 'account-alice': the index is full"),
              std::string::npos)
        << stopped.error;
    bank.unfollow("index");
    EXPECT_EQ(got, (Lines{"1", "2", "3"}));

    broken = false;
    bank.subscribe("index", handle);
    ASSERT_TRUE(bank.wait_for("index", deposit(bank, "alice", 1), patience));
    EXPECT_EQ(status(bank).error, "");
    bank.unfollow("index");
    EXPECT_EQ(got, (Lines{"1", "2", "3", "4", "5", "6"}));
}

TEST_F(Following, a_subscription_cannot_end_itself_from_its_handler) {
    std::promise<std::string> refused;
    Application bank{store, options()};
    bank.subscribe("self", [&](auto) { refused.set_value(refusal<InvalidError>([&] { bank.unfollow("self"); })); });
    deposit(bank, "alice", 1);
    EXPECT_NE(refused.get_future().get().find("cannot be ended from its own handler"), std::string::npos);
}

TEST_F(Following, a_handler_begins_nothing_in_an_application_that_ends) {
    std::promise<std::string> refused;
    {
        Application bank{store, options()};
        std::promise<void> is_called;
        bank.subscribe("self", [&](auto) {
            is_called.set_value();
            std::string why = "nothing was refused";
            const SteadyTime until = Clock::system().until(patience);
            while (why == "nothing was refused" && Clock::system().steady_now() < until) {
                why = refusal<InvalidError>([&] { bank.subscribe("more", [](auto) {}); });
                static_cast<void>(refusal<InvalidError>([&] { bank.unfollow("more"); }));  // it may have ended by now
            }
            refused.set_value(why);
        });
        deposit(bank, "alice", 1);
        is_called.get_future().wait();
    }
    EXPECT_EQ(refused.get_future().get(), "the follower 'more' cannot begin: its application is ending");
}

TEST_F(Following, who_waits_for_itself_is_refused) {
    std::promise<std::string> refused;
    Application bank{store, options()};
    bank.subscribe("self", [&](auto) {
        refused.set_value(
            refusal<InvalidError>([&] { static_cast<void>(bank.wait_for("self", Receipt{}, Duration::max())); }));
    });
    deposit(bank, "alice", 1);
    EXPECT_NE(refused.get_future().get().find("cannot be waited for from its own handler"), std::string::npos);
}

TEST_F(Following, a_cause_that_is_a_sentence_is_told_as_one) {
    Application bank{store, options()};
    deposit(bank, "alice", 1);
    bank.subscribe("index", [](auto) { throw std::runtime_error("The index is full."); });
    const std::string error = wait_until_stopped(bank, log).error;
    EXPECT_NE(error.find("The index is full. What it has done"), std::string::npos) << error;
}

/// The next read of a checkpoint fails.
struct ForgetsOnce final : testing::PassingStore {
    using PassingStore::PassingStore;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        if (keys.front().table == StoredCheckpoint::table && fails.exchange(false))
            throw UnavailableError("it is away");
        return inner().read(keys);
    }
    std::atomic<bool> fails = false;
};

TEST_F(FollowingInItsOwnTime, a_subscription_that_could_not_read_where_it_was_does_not_begin_anew) {
    const auto forgetful = std::make_shared<ForgetsOnce>(store);
    Application bank{forgetful, options()};
    const auto run = [&](std::int64_t cents) {
        Inbox inbox;
        const Receipt last = deposit(bank, "alice", cents);
        bank.subscribe("inbox", std::ref(inbox));
        inbox.wait_for(1);
        while (!bank.wait_for("inbox", last, 1s)) std::this_thread::yield();
        bank.unfollow("inbox");
        return inbox.wait_for(1);
    };
    EXPECT_EQ(run(1), Lines{"account-alice/1 Deposited"});
    forgetful->fails = true;
    EXPECT_EQ(run(2), Lines{"account-alice/2 Deposited"});
    EXPECT_FALSE(forgetful->fails);
}

}  // namespace
}  // namespace varve
