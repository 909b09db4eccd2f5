#include "commands/build.h"
#include "commands/checkpoint.h"
#include "commands/pace.h"
#include "projections/following.h"
#include "projections/process.h"
#include "support/dying_store.h"
#include "support/unordered_store.h"

#include <varve/commands/parked_stream.h>
#include <varve/commands/verified.h>
#include <varve/rows/indexes.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <set>
#include <thread>

namespace varve {
namespace {

/// What an account was paid, and by which version it was summed up.
struct Sum {
    static constexpr std::string_view table = "sums";
    static constexpr std::string_view kept_by = "sums";
    std::int64_t version = 0;
    std::int64_t cents = 0;
    std::int64_t deposits = 0;
    using Indexes = varve::Indexes<Index<&Sum::deposits>>;

    bool operator==(const Sum&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sum& sum) {
    return out << sum.cents << " in " << sum.deposits << " by version " << sum.version;
}

/// The n-th version counts everything n times.
template <int n>
struct SumUpAs {
    static constexpr std::string_view name = "sums";
    static constexpr int version = n;

    void operator()(const Deposited& e, ProjectionContext& context) const {
        for (const std::string_view key : {context.aggregate_id(), std::string_view{"all"}}) {
            context.rows<Sum>().update(key, [&](Sum& row) {
                row.version = n;
                row.cents += n * e.cents;
                ++row.deposits;
            });
        }
    }
};

/// The second version; it takes a hundred events of an account, and the others when it is told to.
struct SumUpWhenTold : SumUpAs<2> {
    std::shared_ptr<std::atomic<bool>> may_go_on = std::make_shared<std::atomic<bool>>(false);

    void operator()(const Deposited& e, ProjectionContext& context) const {
        while (context.version() > 100 && !*may_go_on) std::this_thread::yield();
        SumUpAs<2>::operator()(e, context);
    }
};

Sum sum_of(Application& bank, std::string_view id = "all") {
    return bank.rows<Sum>().get(id).value_or(Sum{});
}

detail::Builds builds_of(Application& bank) {
    return bank.rows<detail::Builds>().get("sums").value_or(detail::Builds{});
}

std::size_t items_in(store::ItemStore& store, const std::string& table) {
    std::size_t items = 0;
    store::Scan scan{.table = table};
    do {
        store::Page page = store.scan(scan);
        for (const store::Record& record : page.records) items += record.item.contains("data") ? 1 : 0;
        scan.next = std::move(page.next);
    } while (scan.next);
    return items;
}

struct Rebuilding : FollowingInItsOwnTime {
    template <int n>
    static void catch_up_with(Application& bank, const Receipt& last) {
        wait_until([&] { return bank.wait_for<SumUpAs<n>>(last, 1s); });
    }
    static void wait_until_live(Application& bank, std::int64_t build) {
        wait_until([&] { return builds_of(bank).live.number == build; });
    }
};

TEST_F(Rebuilding, another_version_is_made_beside_the_live_one_and_then_read_in_its_place) {
    Application old{store, options()};
    old.follow<Account>(SumUpAs<1>{});
    deposit(old, "alice", 1);
    const Receipt last = deposit(old, "bob", 2);
    catch_up_with<1>(old, last);
    EXPECT_EQ(sum_of(old), (Sum{1, 3, 2}));

    Application recent{store, options()};
    recent.follow<Account>(SumUpAs<2>{});
    wait_until_live(recent, 2);
    EXPECT_EQ(sum_of(recent), (Sum{2, 6, 2}));
    EXPECT_EQ(sum_of(old), (Sum{2, 6, 2})) << "programs with the old version read what is live";
    old.transact([](Transaction& tx) { EXPECT_EQ(tx.rows<Sum>().get("alice"), (Sum{2, 2, 1})); }).value();

    const Receipt later = deposit(old, "alice", 10);
    catch_up_with<2>(recent, later);
    catch_up_with<1>(old, later);
    EXPECT_EQ(sum_of(old), (Sum{2, 26, 3}));
}

TEST_F(Rebuilding, readers_and_writers_go_on_and_no_reader_sees_two_versions_or_goes_back) {
    for (const bool is_ordered : {true, false}) {
        const std::shared_ptr<store::ItemStore> inner = open("memory:");
        const std::shared_ptr<store::ItemStore> shared = is_ordered ? inner : std::make_shared<UnorderedStore>(inner);
        const ApplicationOptions with = Following::options();
        Application old{shared, with};
        old.follow<Account>(SumUpAs<1>{}, {.batch_max = 5});
        for (int i = 0; i < 50; ++i) deposit(old, "alice", 1);
        catch_up_with<1>(old, deposit(old, "alice", 1));  // else there were nothing to be rebuilt
        const auto check = [last = Sum{}](const std::vector<Sum>& rows) mutable {
            EXPECT_EQ(rows[0].version, rows[1].version) << "of one moment";
            EXPECT_EQ(rows[0].cents, rows[0].version * rows[0].deposits);
            EXPECT_GE(rows[0].deposits, rows[1].deposits);
            EXPECT_GE(rows[0].version, last.version);
            EXPECT_GE(rows[0].deposits, last.deposits) << "never back in time";
            last = rows[0];
        };
        std::jthread in_transactions{[&](const std::stop_token& is_over) {
            auto seen = check;
            while (!is_over.stop_requested() && !HasFailure()) {
                std::vector<Sum> rows;
                old.transact([&](Transaction& tx) {
                       rows.clear();
                       for (const char* key : {"all", "alice"})
                           rows.push_back(tx.rows<Sum>().get(key).value_or(Sum{1, 0, 0}));
                   })
                    .value();
                seen(rows);
            }
        }};
        std::jthread outside{[&](const std::stop_token& is_over) {
            auto seen = check;
            Application reader{shared, with};
            while (!is_over.stop_requested() && !HasFailure()) {
                std::vector<Sum> rows;
                for (std::optional<Sum>& row :
                     reader.rows<Sum>().get_all({"all", "alice"}, transactions::Isolation::snapshot))
                    rows.push_back(row.value_or(Sum{1, 0, 0}));
                seen(rows);
            }
        }};
        std::jthread writer{[&](const std::stop_token& is_over) {
            while (!is_over.stop_requested())  // no faster than the live rows are kept: they could be outrun
                static_cast<void>(old.wait_for<SumUpAs<1>>(deposit(old, "alice", 1), 1s));
        }};
        Application recent{shared, with};
        recent.follow<Account>(SumUpAs<2>{});
        wait_until_live(recent, 2);
        for (int i = 0; i < 20; ++i) deposit(old, "alice", 1);
        for (std::jthread* one : {&writer, &in_transactions, &outside}) {
            one->request_stop();
            one->join();
        }
        const Receipt last = deposit(old, "alice", 1);
        catch_up_with<2>(recent, last);
        const auto deposits = static_cast<std::int64_t>(old.history<Account>("alice").events.size());
        EXPECT_EQ(sum_of(recent), (Sum{2, 2 * deposits, deposits})) << "each event once";
        EXPECT_EQ(sum_of(recent, "alice"), (Sum{2, 2 * deposits, deposits}));
    }
}

TEST_F(Rebuilding, the_same_version_is_rebuilt_when_it_is_asked_for_also_by_two_at_once) {
    Application first{store, options()};
    Application second{store, options()};
    first.follow<Account>(SumUpAs<1>{});
    second.follow<Account>(SumUpAs<1>{});
    for (int i = 0; i < 30; ++i) deposit(first, "alice", 1);
    catch_up_with<1>(first, deposit(second, "bob", 1));
    const store::Write damage{.key = {.table = "sums", .partition = "bob", .sort = {}},
                              .action = store::Erase{},
                              .condition = store::item_exists()};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&damage, 1}).front()));
    EXPECT_EQ(sum_of(first, "bob"), Sum{});
    {
        const std::jthread one{[&] { first.rebuild<SumUpAs<1>>(); }};
        const std::jthread other{[&] { second.rebuild("sums"); }};
    }
    wait_until([&] { return builds_of(first).live.number > 1 && !builds_of(first).next; });
    EXPECT_EQ(sum_of(first), (Sum{1, 31, 31}));
    EXPECT_EQ(sum_of(second, "bob"), (Sum{1, 1, 1}));
    catch_up_with<1>(second, deposit(first, "bob", 1));
    EXPECT_EQ(sum_of(first), (Sum{1, 32, 32}));
    EXPECT_TRUE(first.verify<SumUpAs<1>>().differences.empty());
    EXPECT_EQ(status(first).error, "");
}

TEST_F(Rebuilding, a_version_below_the_live_one_is_refused_and_one_that_runs_stops_and_says_so) {
    Application old{store, options()};
    old.follow<Account>(SumUpAs<1>{});
    catch_up_with<1>(old, deposit(old, "alice", 1));
    Application recent{store, options()};
    recent.follow<Account>(SumUpAs<2>{});
    wait_until_live(recent, 2);

    EXPECT_NE(log.wait_for("version 2 is live")
                  .find("the follower 'sums' has stopped: version 2 is live; this program "
                        "has version 1 of 'sums', which would go back"),
              std::string::npos);
    wait_until([&] { return status(old).state == FollowerStatus::State::stopped; });
    EXPECT_EQ(status(old).version, 2);
    EXPECT_EQ(status(old).build, 2);
    EXPECT_NE(refusal<ConfigError>([&] { old.rebuild("sums"); }).find("'sums' cannot be rebuilt: version 2 is live"),
              std::string::npos);
    Application late{store, options()};
    EXPECT_NE(refusal<ConfigError>([&] {
                  late.follow<Account>(SumUpAs<1>{});
              }).find("the follower 'sums' cannot begin: version 2 is live; this program has version 1"),
              std::string::npos);
    EXPECT_FALSE(builds_of(late).next);
}

TEST_F(Rebuilding, a_version_that_is_the_first_to_take_anything_has_nothing_to_rebuild) {
    Application bank{store, options()};
    const Receipt last = deposit(bank, "alice", 1);
    bank.follow<Account>(SumUpAs<3>{});
    catch_up_with<3>(bank, last);
    EXPECT_EQ(sum_of(bank), (Sum{3, 3, 1}));
    EXPECT_EQ(builds_of(bank).live.number, 1);
    EXPECT_EQ(builds_of(bank).live.version, 3);
}

/// Does not say who keeps it.
struct KeptByNobody {
    static constexpr std::string_view table = "plain";
    std::int64_t cents = 0;
};
template <int n>
struct SumUpKeptByNobody {
    static constexpr std::string_view name = "plain";
    static constexpr int version = n;
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<KeptByNobody>().update(context.aggregate_id(), [&](KeptByNobody& row) { row.cents += e.cents; });
    }
};

TEST_F(Rebuilding, what_does_not_say_who_keeps_it_is_not_rebuilt) {
    Application bank{store, options()};
    bank.follow<Account>(SumUpKeptByNobody<1>{});
    const Receipt last = deposit(bank, "alice", 1);
    wait_until([&] { return bank.wait_for<SumUpKeptByNobody<1>>(last, 1s); });
    const std::string named =
        "cannot be rebuilt: it writes rows of 'plain', and nothing says that they are made anew "
        "with it. Add to varve::(anonymous namespace)::KeptByNobody: static constexpr std::string_view "
        "kept_by = \"plain\";";
    EXPECT_NE(refusal<ConfigError>([&] { bank.rebuild("plain"); }).find("kept_by = \"plain\";"), std::string::npos);
    EXPECT_NE(refusal<ConfigError>([&] { bank.rebuild("plain"); }).find("it writes rows of 'plain'"),
              std::string::npos);
    Application recent{store, options()};
    EXPECT_NE(
        refusal<ConfigError>([&] { recent.follow<Account>(SumUpKeptByNobody<2>{}); }).find("kept_by = \"plain\";"),
        std::string::npos);
    EXPECT_FALSE(bank.rows<detail::Builds>().get("plain"));
    EXPECT_NE(refusal<InvalidError>([&] { bank.rebuild("nobody"); }).find("there is no follower 'nobody'"),
              std::string::npos);
    bank.subscribe("inbox", [](auto) {});
    EXPECT_NE(refusal<InvalidError>([&] { bank.rebuild("inbox"); }).find("is a subscription"), std::string::npos);
}

struct SumUpForOthers {
    static constexpr std::string_view name = "others";
    void operator()(const Deposited&, ProjectionContext& context) const { context.rows<Sum>().put("all", {}); }
};
struct Misnamed {
    static constexpr std::string_view table = "sums.build-2";
    std::int64_t cents = 0;
};

TEST_F(Rebuilding, nobody_else_writes_rows_that_a_follower_keeps) {
    Application bank{store, options()};
    const auto write = [&] { bank.transact([](Transaction& tx) { tx.rows<Sum>().put("alice", {}); }).value(); };
    EXPECT_NE(refusal<InvalidError>(write).find("rows of 'sums' are kept by the follower 'sums' alone"),
              std::string::npos);
    bank.follow<Account>(SumUpForOthers{});
    deposit(bank, "alice", 1);
    EXPECT_NE(wait_until_stopped(bank, log).error.find("kept by the follower 'sums' alone"), std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { bank.rows<Misnamed>(); }).find("is the framework's own"), std::string::npos);
    EXPECT_NE(refusal<ConfigError>([&] { bank.subscribe("sums@2", [](auto) {}); }).find("names that end in '@'"),
              std::string::npos);
}

TEST_F(Rebuilding, is_paused_and_resumed_for_all_processes) {
    constexpr FollowOptions slow{.batch_max = 50, .rebuild_events_per_second_max = 5};
    const SumUpWhenTold second;
    Application bank{store, options()};
    bank.follow<Account>(SumUpAs<1>{});
    Receipt last;
    for (int i = 0; i < 1000; ++i) last = deposit(bank, "alice", 1);
    catch_up_with<1>(bank, last);
    EXPECT_NE(refusal<InvalidError>([&] { bank.pause_rebuild("sums"); }).find("not being rebuilt"), std::string::npos);
    const auto next = [](Application& of) {
        const std::vector<FollowerStatus> all = of.followers();
        return all.size() > 1 ? all[1] : FollowerStatus{};
    };
    {
        Application builder{store, options()};
        builder.follow<Account>(second, slow);
        wait_until([&] { return next(builder).events > 0; });
        wait_until([&] { return next(bank).build == 2; });
        bank.pause_rebuild("sums");  // by one that has no part in it
        wait_until([&] { return next(builder).paused; });
        EXPECT_EQ(next(builder).state, FollowerStatus::State::building);
        EXPECT_EQ(next(builder).version, 2);
        *second.may_go_on = true;
    }
    EXPECT_TRUE(builds_of(bank).paused);
    Application heir{store, options()};
    heir.follow<Account>(second, slow);
    wait_until([&] { return next(heir).paused && !next(heir).owner.empty(); });
    const std::int64_t taken = next(heir).events;
    EXPECT_GT(taken, 0);
    EXPECT_LT(taken, 1000);
    const Time then = clock.now();
    wait_until([&] { return clock.now() > then + 60s; });
    EXPECT_EQ(next(heir).events, taken);
    EXPECT_EQ(builds_of(bank).live.number, 1);

    bank.resume_rebuild("sums");
    wait_until_live(heir, 2);
    EXPECT_EQ(sum_of(bank), (Sum{2, 2000, 1000}));
}

TEST(Pace, lets_no_more_pass_in_a_second_than_it_is_told_and_does_not_make_up_for_what_was_not_used) {
    detail::Pace pace{100};
    SteadyTime now{};
    EXPECT_EQ(pace.wait(0, now), Duration::zero());
    EXPECT_EQ(pace.wait(50, now), 500ms);
    EXPECT_EQ(pace.wait(50, now + 200ms), 300ms);
    EXPECT_EQ(pace.wait(50, now + 500ms), Duration::zero());
    EXPECT_EQ(pace.wait(60, now + 560ms), 40ms);
    now += 1h;
    EXPECT_EQ(pace.wait(60, now), Duration::zero());
    EXPECT_EQ(pace.wait(160, now), 1s);
    detail::Pace unbounded{0};
    EXPECT_EQ(unbounded.wait(0, now), Duration::zero());
    EXPECT_EQ(unbounded.wait(1'000'000, now), Duration::zero());
}

struct RebuildingStepByStep : FollowingStepByStep {
    /// Some accounts with so many deposits of 1, taken by version 1.
    void begin_with(int deposits) {
        Application bank{store, world()};
        for (int i = 0; i < deposits; ++i) bank.execute<Account>(i % 2 == 0 ? "alice" : "bob", Deposit{1}).value();
        Process old{store, world(), SumUpAs<1>{}};
        old.turn_of("sums");
        ASSERT_EQ(sum_of(bank), (Sum{1, deposits, deposits}));
    }
};

TEST_F(RebuildingStepByStep, an_owner_that_slept_through_the_swap_writes_nothing) {
    begin_with(4);
    Process old{store, world(), SumUpAs<1>{}};
    old.turn_of("sums");  // has the lock from here on
    Process recent{store, world(), SumUpAs<2>{}};
    recent.turn_of("sums@2");
    ASSERT_EQ(builds_of(recent.bank).live.number, 2);

    old.bank.execute<Account>("alice", Deposit{1}).value();
    const std::string refused = refusal<UnavailableError>([&] { old.turn_of("sums"); });
    EXPECT_NE(refused.find("Nothing was written"), std::string::npos) << refused;
    EXPECT_EQ(sum_of(old.bank), (Sum{2, 8, 4}));
    recent.keeper.turn();
    recent.turn_of("sums");
    EXPECT_EQ(sum_of(old.bank), (Sum{2, 10, 5}));

    old.keeper.turn();
    EXPECT_EQ(old.statuses()[0].state, FollowerStatus::State::stopped);
    EXPECT_NE(old.statuses()[0].error.find("version 2 is live"), std::string::npos);
}

TEST_F(RebuildingStepByStep, is_not_live_before_it_has_come_as_far_as_what_is_read) {
    begin_with(40);
    Process recent{store, world(), SumUpAs<2>{}, {.batch_max = 10, .rebuild_events_per_second_max = 10}};
    for (std::int64_t taken = 10; taken < 40; taken += 10) {
        recent.turn_of("sums@2");
        EXPECT_EQ(recent.statuses()[1].events, taken) << "ten in a second";
        EXPECT_EQ(recent.turn_of("sums@2").value_or(Duration::zero()), 1s);
        EXPECT_EQ(builds_of(recent.bank).live.number, 1);
        EXPECT_EQ(sum_of(recent.bank), (Sum{1, 40, 40}));
        clock.advance(1s);
    }
    const FollowerStatus status = recent.statuses()[1];
    EXPECT_EQ(status.state, FollowerStatus::State::building);
    EXPECT_EQ(status.build, 2);
    EXPECT_EQ(status.version, 2);
    ASSERT_TRUE(status.events_per_second);
    EXPECT_NEAR(*status.events_per_second, 10, 1);
    ASSERT_TRUE(status.time_left);
    EXPECT_NEAR(std::chrono::duration<double>(*status.time_left).count(), 1.3, 0.7);
    for (int i = 0; i < 3; ++i) {
        recent.turn_of("sums@2");
        clock.advance(1s);
    }
    EXPECT_EQ(builds_of(recent.bank).live.number, 2);
    EXPECT_EQ(sum_of(recent.bank), (Sum{2, 80, 40}));
}

TEST_F(RebuildingStepByStep, each_event_is_taken_once_wherever_the_process_dies) {
    constexpr int deposits = 12;
    constexpr FollowOptions in_batches{.batch_max = 5, .replaced_rows_kept_for = Duration::zero()};
    const auto is_done = [](Application& bank) {
        const detail::Builds builds = builds_of(bank);
        return builds.live.number == 2 && builds.replaced.empty();
    };
    /// Whether it has died before it was done.
    const auto run = [&](int dies_at, std::uint64_t applies) {
        store = open("memory:");
        begin_with(deposits);
        const auto dying = std::make_shared<DyingStore>(store, dies_at, applies);
        try {
            Process owner{dying, world(), SumUpAs<2>{}, in_batches};
            for (int i = 0; i < 50 && !dying->is_dead(); ++i) {
                try {
                    owner.turn_of("sums@2");
                    owner.keeper.turn();
                    clock.advance(1s);
                } catch (const Error&) {
                }
                if (!dying->is_dead() && is_done(owner.bank) && !dying->is_dead()) return false;
            }
        } catch (const Error&) {
        }
        EXPECT_TRUE(dying->is_dead());
        clock.advance(1min);  // its locks are over
        Process heir{store, world(), SumUpAs<2>{}, in_batches};
        for (int i = 0; i < 200 && !is_done(heir.bank); ++i) {
            heir.turn_of("sums@2");
            heir.keeper.turn();
            clock.advance(1s);
        }
        EXPECT_TRUE(is_done(heir.bank)) << "died at " << dies_at << ", applied " << applies;
        EXPECT_EQ(sum_of(heir.bank), (Sum{2, 2 * deposits, deposits})) << "died at " << dies_at;
        EXPECT_EQ(sum_of(heir.bank, "bob"), (Sum{2, deposits, deposits / 2}));
        EXPECT_EQ(heir.bank.rows<Sum>().where<&Sum::deposits>(deposits / 2).to_vector().size(), 2u);
        EXPECT_EQ(items_in(*store, "sums"), 0u);
        return !HasFailure();
    };
    int requests = 1;
    while (run(requests, 0) && run(requests, ~std::uint64_t{0})) ++requests;
    EXPECT_GT(requests, 50) << "it has died at so many requests";
}

TEST_F(RebuildingStepByStep, the_old_rows_stay_for_the_time_that_they_are_kept_and_go_then) {
    begin_with(10);
    Application reader{store, world()};
    const RowPage<Sum> first = reader.rows<Sum>().all({.limit = 1});
    ASSERT_FALSE(first.next.empty());
    Process recent{store, world(), SumUpAs<2>{}, {.replaced_rows_kept_for = 1h}};
    recent.turn_of("sums@2");
    recent.keeper.turn();
    ASSERT_EQ(builds_of(reader).live.number, 2);
    const RowPage<Sum> begun = reader.rows<Sum>().all({.limit = 1});
    for (const Duration passed : {Duration{0s}, Duration{30min}, Duration{29min}}) {
        clock.advance(passed);
        recent.keeper.turn();
        EXPECT_EQ(items_in(*store, "sums"), 3u);
        EXPECT_EQ(items_in(*store, "indexes"), 6u);
        const RowPage<Sum> rest = reader.rows<Sum>().all({.next = first.next});
        ASSERT_EQ(rest.rows.size(), 2u) << "a list goes on in the rows that it began with";
        EXPECT_EQ(rest.rows[0].value.version, 1);
    }
    clock.advance(2min);
    for (int i = 0; i < 20; ++i) recent.keeper.turn();
    EXPECT_EQ(items_in(*store, "sums"), 0u);
    EXPECT_EQ(items_in(*store, "indexes"), 3u);
    EXPECT_EQ(items_in(*store, "sums.build-2"), 3u);
    EXPECT_EQ(reader.rows<detail::Checkpoint>().get("sums"), std::nullopt);
    EXPECT_TRUE(builds_of(reader).replaced.empty());
    EXPECT_NE(refusal<InvalidError>([&] {
                  reader.rows<Sum>().all({.next = first.next});
              }).find("read the list from its beginning"),
              std::string::npos);
    EXPECT_EQ(reader.rows<Sum>().all({.next = begun.next}).rows.size(), 2u);
}

TEST_F(RebuildingStepByStep, a_list_in_a_transaction_stays_in_its_build_too) {
    begin_with(10);
    Application reader{store, world()};
    const auto page = [&](const PageOptions& options) {
        RowPage<Sum> found;
        reader.transact([&](Transaction& tx) { found = tx.rows<Sum>().between<&Sum::deposits>({.first = 1}, options); })
            .value();
        return found;
    };
    const RowPage<Sum> before = page({.limit = 1});
    Process recent{store, world(), SumUpAs<2>{}};
    recent.turn_of("sums@2");
    const RowPage<Sum> after = page({.limit = 1});
    EXPECT_EQ(before.rows.at(0).value.version, 1);
    EXPECT_EQ(after.rows.at(0).value.version, 2);
    for (const auto& [begun, version] : {std::pair{&before, 1}, std::pair{&after, 2}}) {
        const RowPage<Sum> rest = page({.next = begun->next});
        ASSERT_EQ(rest.rows.size(), 2u);
        for (const RowOf<Sum>& row : rest.rows) EXPECT_EQ(row.value.version, version);
        const RowPage<Sum> outside = reader.rows<Sum>().between<&Sum::deposits>({.first = 1}, {.next = begun->next});
        EXPECT_EQ(outside.rows.size(), 2u);
    }
}

/// One row for each deposit, found by its amount, and no two of one amount.
struct Amount {
    static constexpr std::string_view table = "amounts";
    static constexpr std::string_view kept_by = "amounts";
    static constexpr bool sorted = true;
    std::int64_t cents = 0;
    std::string label;
    using Indexes = varve::Indexes<Unique<&Amount::label>, Index<&Amount::cents>>;
};
template <int n>
struct NoteAmounts {
    static constexpr std::string_view name = "amounts";
    static constexpr int version = n;
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<Amount>().put({std::string{context.aggregate_id()}, std::to_string(context.version())},
                                   {.cents = n * e.cents, .label = "of " + std::to_string(e.cents)});
    }
};

TEST_F(RebuildingStepByStep, indexes_find_the_live_rows_and_those_of_two_builds_may_have_one_unique_value) {
    Application bank{store, world()};
    Process old{store, world(), NoteAmounts<1>{}};
    for (const std::int64_t cents : {5, 7}) bank.execute<Account>("alice", Deposit{cents}).value();
    old.turn_of("amounts");
    Process recent{store, world(), NoteAmounts<2>{}};
    EXPECT_EQ(bank.rows<Amount>().find<&Amount::label>("of 5")->value.cents, 5);
    recent.turn_of("amounts@2");
    ASSERT_EQ(bank.rows<detail::Builds>().get("amounts")->live.number, 2);
    EXPECT_EQ(bank.rows<Amount>().find<&Amount::label>("of 5")->value.cents, 10);
    EXPECT_EQ(bank.rows<Amount>().where<&Amount::cents>(14).to_vector().size(), 1u);
    EXPECT_EQ(bank.rows<Amount>().where<&Amount::cents>(5).to_vector().size(), 0u);
    EXPECT_EQ(bank.rows<Amount>().range({"alice"}).to_vector().size(), 2u);
    bank.transact([](Transaction& tx) {
            EXPECT_EQ(tx.rows<Amount>().find<&Amount::label>("of 7")->value.cents, 14);
            EXPECT_EQ(tx.rows<Amount>().range({"alice"}).to_vector().size(), 2u);
        })
        .value();
    EXPECT_EQ(bank.build_indexes<Amount>(), 0u);
}

/// Cannot take 13.
template <int n>
struct FearsThirteen {
    static constexpr std::string_view name = "sums";
    static constexpr int version = n;
    std::shared_ptr<std::atomic<bool>> is_mended = std::make_shared<std::atomic<bool>>(false);
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents == poison && !*is_mended) throw std::runtime_error("13 is not for us");
        SumUpAs<n>{}(e, context);
    }
};

TEST_F(RebuildingStepByStep, streams_that_only_the_next_build_has_set_aside_keep_it_from_being_read) {
    constexpr FollowOptions park{.on_poison = FollowOptions::OnPoison::park};
    Application bank{store, world()};
    Process old{store, world(), SumUpAs<1>{}};
    for (const std::int64_t cents : {1, 13, 2}) bank.execute<Account>("alice", Deposit{cents}).value();
    bank.execute<Account>("bob", Deposit{5}).value();
    old.turn_of("sums");
    const FearsThirteen<2> projection;
    Process recent{store, world(), projection, park};
    recent.turn_of("sums@2");
    EXPECT_EQ(builds_of(bank).live.number, 1);
    EXPECT_EQ(recent.statuses()[1].parked, 1);
    EXPECT_EQ(recent.statuses()[0].parked, 0);
    EXPECT_EQ(sum_of(bank), (Sum{1, 21, 4}));

    *projection.is_mended = true;
    EXPECT_EQ(recent.retry_parked("sums@2"), 1u);
    clock.advance(2s);
    recent.turn_of("sums@2");
    EXPECT_EQ(builds_of(bank).live.number, 2);
    EXPECT_EQ(sum_of(bank), (Sum{2, 42, 4}));
}

TEST_F(RebuildingStepByStep, streams_that_both_builds_have_set_aside_stay_aside) {
    constexpr FollowOptions park{.on_poison = FollowOptions::OnPoison::park};
    Application bank{store, world()};
    Process old{store, world(), FearsThirteen<1>{}, park};
    for (const std::int64_t cents : {1, 13, 2}) bank.execute<Account>("alice", Deposit{cents}).value();
    bank.execute<Account>("bob", Deposit{5}).value();
    old.turn_of("sums");
    const FearsThirteen<2> projection;
    Process recent{store, world(), projection, park};
    recent.turn_of("sums@2");
    clock.advance(1s);
    recent.turn_of("sums@2");
    ASSERT_EQ(builds_of(bank).live.number, 2);
    EXPECT_EQ(sum_of(bank), (Sum{2, 12, 2}));
    recent.keeper.turn();
    *projection.is_mended = true;
    EXPECT_EQ(recent.retry_parked("sums"), 1u);
    EXPECT_EQ(sum_of(bank), (Sum{2, 42, 4}));
}

TEST_F(RebuildingStepByStep, a_higher_version_takes_the_place_of_one_that_is_still_being_made) {
    begin_with(20);
    Process second{store, world(), SumUpAs<2>{}, {.batch_max = 5, .rebuild_events_per_second_max = 5}};
    second.turn_of("sums@2");
    Process third{store, world(), SumUpAs<3>{}};
    EXPECT_EQ(builds_of(third.bank).next->number, 3);
    clock.advance(1s);
    EXPECT_NE(refusal<UnavailableError>([&] { second.turn_of("sums@2"); }).find("Nothing was written"),
              std::string::npos);
    third.turn_of("sums@3");
    ASSERT_EQ(builds_of(third.bank).live.number, 3);
    EXPECT_EQ(sum_of(second.bank), (Sum{3, 60, 20}));
    for (int i = 0; i < 20; ++i) third.keeper.turn();
    EXPECT_EQ(items_in(*store, "sums.build-2"), 0u) << "nobody ever read them";
    EXPECT_EQ(items_in(*store, "sums"), 3u);
}

}  // namespace
}  // namespace varve
