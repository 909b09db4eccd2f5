#include "commands/build.h"
#include "commands/checkpoint.h"
#include "commands/verification.h"
#include "feed/partition.h"
#include "projections/following.h"
#include "projections/process.h"
#include "support/dying_store.h"
#include "support/hooked_store.h"
#include "support/unordered_store.h"

#include <varve/commands/parked_stream.h>
#include <varve/commands/verified.h>
#include <varve/locks/locks.h>
#include <varve/testing/passing_store.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace varve {
namespace {

using feed::Partition;

/// What an account was paid, by which version.
struct Paid {
    static constexpr std::string_view table = "paid";
    static constexpr std::string_view kept_by = "paid";
    std::int64_t version = 0;
    std::int64_t cents = 0;
    std::int64_t deposits = 0;

    bool operator==(const Paid&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Paid& paid) {
    return out << paid.cents << " in " << paid.deposits << " by version " << paid.version;
}

/// The n-th version counts everything n times. The row "all" is written by all partitions.
template <int n>
struct SumPaid {
    static constexpr std::string_view name = "paid";
    static constexpr int version = n;

    void operator()(const Deposited& e, ProjectionContext& context) const {
        for (const std::string_view key : {context.aggregate_id(), std::string_view{"all"}}) {
            context.rows<Paid>().update(key, [&](Paid& row) {
                row.version = n;
                row.cents += n * e.cents;
                ++row.deposits;
            });
        }
    }
};

constexpr FollowOptions in_four{.partitions = 4};
constexpr const char* in_order[] = {"carol", "alice", "bob", "eve"};  // whose accounts these four have

Paid paid_of(Application& bank, std::string_view id = "all") {
    return bank.rows<Paid>().get(id).value_or(Paid{});
}

detail::Builds builds_of(Application& bank, std::string_view follower) {
    return bank.rows<detail::Builds>().get(follower).value_or(detail::Builds{});
}

/// Of those that have one.
Lines checkpoints(Application& bank, std::initializer_list<const char*> names) {
    Lines found;
    for (const char* name : names) {
        if (bank.rows<detail::Checkpoint>().get(name)) found.emplace_back(name);
    }
    return found;
}

bool is_here(const FollowerStatus& status) {
    return status.state == FollowerStatus::State::live || status.state == FollowerStatus::State::catching_up;
}

/// So many partitions this application has.
std::ptrdiff_t count_here(Application& bank) {
    const std::vector<FollowerStatus> all = bank.followers();
    return std::ranges::count_if(all, is_here);
}

struct Partitions : FollowingInItsOwnTime {
    static void catch_up_with(Application& bank, std::string_view follower, const Receipt& last = {}) {
        wait_until([&] { return bank.wait_for(follower, last, 1s); });
    }
};
using PartitionsStepByStep = FollowingStepByStep;

/// Writes few rows at a time, so that one transaction does not take many events.
class NarrowStore final : public testing::PassingStore {
  public:
    using PassingStore::PassingStore;
    store::Capabilities capabilities() const override {
        store::Capabilities less = inner().capabilities();
        less.atomic_writes_max = 20;
        return less;
    }
};

// --- which one has a stream ---

TEST(PartitionOfAStream, is_the_fnv_1a_hash_of_its_name_modulo_their_number_for_ever) {
    for (std::int64_t number = 1; number <= 4; ++number)
        EXPECT_EQ(Partition::number_for("account-" + std::string{in_order[number - 1]}, 4), number);
    EXPECT_EQ(Partition::number_for("account-alice", 3), 3);
    EXPECT_EQ(Partition::number_for("account-alice", 5), 5);
    EXPECT_EQ(Partition::number_for("account-alice", 64), 6);
    EXPECT_EQ(Partition::number_for("account-erin", 64), 64);
    EXPECT_EQ(Partition::number_for("account-alice", 1), 1);
}

TEST(PartitionOfAStream, is_one_alone_and_all_have_about_as_many) {
    constexpr std::int64_t of = 64;
    constexpr int streams = 6400;
    std::map<std::int64_t, int> counts;
    for (int i = 0; i < streams; ++i) {
        const std::string stream = "order-" + std::to_string(i);
        int in = 0;
        for (Partition one{.number = 1, .of = of}; one.number <= of; ++one.number) {
            if (!one.has(stream)) continue;
            ++in;
            ++counts[one.number];
        }
        ASSERT_EQ(in, 1) << stream;
    }
    ASSERT_EQ(counts.size(), static_cast<std::size_t>(of));
    for (const auto& [number, count] : counts) EXPECT_NEAR(count, streams / of, streams / of / 2) << number;
}

// --- what they do ---

TEST_F(Partitions, take_each_event_once_all_together_also_where_they_write_the_same_row) {
    constexpr int rounds = 25;
    for (const bool is_ordered : {true, false}) {
        const std::shared_ptr<store::ItemStore> inner = open("memory:");
        const std::shared_ptr<store::ItemStore> shared = is_ordered ? inner : std::make_shared<UnorderedStore>(inner);
        Application bank{shared, Following::options()};
        for (int i = 0; i < rounds; ++i) deposit(bank, in_order[i % 4], 1);
        bank.follow<Account>(SumUp{}, in_four);
        for (int i = 0; i < rounds; ++i) {
            for (const char* account : in_order) deposit(bank, account, 1);
        }
        catch_up_with(bank, "turnover");
        EXPECT_EQ(turnover(bank), (Turnover{5 * rounds, 5 * rounds}));
        EXPECT_EQ(turnover(bank, "eve").deposits, rounds + rounds / 4);

        const std::vector<FollowerStatus> all = bank.followers();
        ASSERT_EQ(all.size(), 4u);
        std::int64_t events = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(all[i].name, "turnover");
            EXPECT_EQ(all[i].partition, static_cast<std::int64_t>(i + 1));
            EXPECT_EQ(all[i].partitions, 4);
            EXPECT_NE(all[i].owner, "");
            EXPECT_GE(all[i].events, rounds) << "each has a share";
            events += all[i].events;
        }
        EXPECT_EQ(events, 5 * rounds);
        EXPECT_EQ(checkpoints(bank, {"turnover", "turnover#1", "turnover#2", "turnover#3", "turnover#4", "turnover#5"}),
                  (Lines{"turnover#1", "turnover#2", "turnover#3", "turnover#4"}));
    }
}

TEST_F(Partitions, hand_over_the_events_of_each_stream_in_their_order) {
    Application bank{store, options()};
    constexpr Version versions = 30;
    for (Version version = 1; version <= versions / 2; ++version) {
        for (const char* account : in_order) deposit(bank, account, 1);
    }
    std::mutex mutex;
    std::map<std::string, std::vector<Version>> handed;
    std::map<std::int64_t, int> at_work;
    const auto handle = [&](std::span<const RecordedEvent> events) {
        const std::int64_t number = Partition::number_for(events.front().stream, 4);
        {
            const std::lock_guard lock{mutex};
            EXPECT_EQ(++at_work[number], 1) << "one batch at a time";
            for (const RecordedEvent& event : events) {
                EXPECT_EQ(Partition::number_for(event.stream, 4), number);
                handed[event.stream].push_back(event.version);
            }
        }
        std::this_thread::yield();
        const std::lock_guard lock{mutex};
        --at_work[number];
    };
    bank.subscribe("everything", handle, {.follow = {.batch_max = 3, .partitions = 4}});
    for (Version version = 1; version <= versions / 2; ++version) {
        for (const char* account : in_order) deposit(bank, account, 1);
    }
    catch_up_with(bank, "everything");
    std::vector<Version> all(versions);
    for (Version version = 1; version <= versions; ++version) all[static_cast<std::size_t>(version - 1)] = version;
    const std::lock_guard lock{mutex};
    for (const char* account : in_order) EXPECT_EQ(handed["account-" + std::string{account}], all) << account;
}

TEST_F(Partitions, are_waited_for_where_they_have_what_was_written) {
    Application bank{store, options()};
    bank.follow<Account>(Superstitious{}, in_four);
    const Receipt of_alice = deposit(bank, "alice", poison);
    wait_until([&] { return bank.followers()[1].state == FollowerStatus::State::stopped; });
    const Receipt of_bob = deposit(bank, "bob", 1);
    const Receipt of_both = bank.transact([](Transaction& tx) {
                                    tx.execute<Account>("eve", Deposit{1});
                                    tx.execute<Account>("alice", Deposit{1});
                                })
                                .value();
    catch_up_with(bank, "turnover", of_bob);
    EXPECT_EQ(turnover(bank, "bob").cents, 1);
    EXPECT_FALSE(bank.wait_for("turnover", of_alice, 1s));
    EXPECT_FALSE(bank.wait_for("turnover", of_both, 1s));
    EXPECT_FALSE(bank.wait_for("turnover", Receipt{}, 1s)) << "that is all of them";
}

TEST_F(Partitions, set_streams_aside_each_for_itself) {
    const Superstitious projection;
    Application bank{store, options()};
    bank.follow<Account>(projection, {.on_poison = FollowOptions::OnPoison::park, .parked_max = 1, .partitions = 4});
    for (const char* account : {"alice", "carol"}) deposit(bank, account, poison);
    const Receipt last = deposit(bank, "bob", 1);
    const Receipt later = deposit(bank, "alice", 2);
    catch_up_with(bank, "turnover", last);
    wait_until([&] { return bank.parked("turnover").size() == 2; });
    EXPECT_EQ(bank.parked("turnover#1").front().stream, "account-carol");
    EXPECT_EQ(bank.parked("turnover#2").front().stream, "account-alice");
    EXPECT_TRUE(bank.parked("turnover#3").empty());
    EXPECT_FALSE(bank.wait_for("turnover", later, 1s));
    EXPECT_NE(refusal<InvalidError>([&] { static_cast<void>(bank.verify<Superstitious>()); }).find("call retry_parked"),
              std::string::npos);

    deposit(bank, "dave", poison);  // in alice's partition
    EXPECT_NE(log.wait_for("has stopped")
                  .find("the follower 'turnover#2' has stopped at Deposited, version 1 of stream "
                        "'account-dave': 13 is not for us; 1 streams are set aside already"),
              std::string::npos);
    catch_up_with(bank, "turnover", deposit(bank, "bob", 1));

    *projection.is_mended = true;
    EXPECT_EQ(bank.retry_parked("turnover"), 2u);
    EXPECT_TRUE(bank.parked("turnover").empty());
    EXPECT_EQ(turnover(bank, "carol").cents, poison);
    // The log hears of it first.
    wait_until([&] { return bank.followers()[1].state == FollowerStatus::State::stopped; });
    bank.unfollow("turnover");
    bank.follow<Account>(projection, in_four);
    catch_up_with(bank, "turnover");
    EXPECT_EQ(turnover(bank), (Turnover{3 * poison + 4, 6})) << "each event once";
}

TEST_F(Partitions, refuse_a_handler_that_waits_for_another_one_or_takes_up_what_that_has_set_aside) {
    Application bank{store, options()};
    const auto waits = [&](auto) {
        EXPECT_NE(refusal<InvalidError>([&] { static_cast<void>(bank.wait_for("inbox", {}, 1s)); }).find("own handler"),
                  std::string::npos);
        EXPECT_NE(refusal<InvalidError>([&] { static_cast<void>(bank.retry_parked("inbox")); }).find("own handler"),
                  std::string::npos);
        EXPECT_NE(refusal<InvalidError>([&] { bank.unfollow("inbox"); }).find("own handler"), std::string::npos);
    };
    bank.subscribe("inbox", waits, {.follow = in_four});
    for (const char* account : in_order) deposit(bank, account, 1);
    catch_up_with(bank, "inbox");
}

TEST_F(Partitions, are_verified_while_everybody_writes) {
    Application bank{store, Following::options()};
    bank.follow<Account>(SumUp{}, {.batch_max = 3, .partitions = 4});
    catch_up_with(bank, "turnover", deposit(bank, "alice", 1));
    std::jthread writer{[&](const std::stop_token& is_over) {
        for (std::size_t i = 0; !is_over.stop_requested(); ++i)
            static_cast<void>(bank.wait_for<SumUp>(deposit(bank, in_order[i % 4], 1), 1s));
    }};
    for (std::int64_t events = 0; events < 100 && !HasFailure();) {
        const Verified verified = bank.verify<SumUp>();
        EXPECT_TRUE(verified.differences.empty()) << verified.differences.front().table;
        events = verified.events;
    }
    bank.transact([](Transaction& tx) { tx.rows<Turnover>().update("bob", [](Turnover& row) { row.cents += 7; }); })
        .value();
    const Verified wrong = bank.verify("turnover");
    writer.request_stop();
    ASSERT_EQ(wrong.differences.size(), 1u);
    EXPECT_EQ(wrong.differences.front().key.partition, "bob");
}

TEST_F(PartitionsStepByStep, are_verified_where_each_of_them_is) {
    Process one{store, world(), SumUp{}, in_four};
    for (const char* account : in_order) one.bank.execute<Account>(account, Deposit{1}).value();
    one.turn_of("turnover#2");
    one.turn_of("turnover#4");
    const Verified verified = detail::Verification{one.bank, one.keeper.live_consumer(),
                                                   detail::Verification::Kind::follows, Application::verify_bytes_max}
                                  .run();
    EXPECT_TRUE(verified.differences.empty());
    EXPECT_EQ(verified.events, 2);
}

// --- who has them ---

TEST_F(Following, a_process_that_has_no_partitions_gets_some_of_one_that_has_several) {
    Application first{store, options()};
    first.follow<Account>(SumUp{}, in_four);
    for (const char* account : in_order) deposit(first, account, 1);
    ASSERT_TRUE(first.wait_for<SumUp>(Receipt{}, patience));
    ASSERT_EQ(count_here(first), 4);
    Application second{store, options()};
    second.follow<Account>(SumUp{}, in_four);
    wait_until([&] { return count_here(second) > 0; });
    wait_until([&] { return count_here(first) + count_here(second) == 4; });
    EXPECT_GT(count_here(first), 0);
    for (int i = 0; i < 10; ++i) {
        for (const char* account : in_order) deposit(i % 2 == 0 ? first : second, account, 1);
    }
    for (Application* bank : {&first, &second}) EXPECT_TRUE(bank->wait_for<SumUp>(Receipt{}, patience));
    EXPECT_EQ(turnover(first), (Turnover{44, 44})) << "each event once";
}

/// Its wall clock is an hour ahead of all others.
class ClockAhead final : public Clock {
  public:
    Time now() override { return Clock::system().now() + 1h; }
    SteadyTime steady_now() override { return Clock::system().steady_now(); }
    void sleep_for(Duration duration, std::stop_token stop) override {
        Clock::system().sleep_for(duration, std::move(stop));
    }
};

TEST_F(Following, a_process_whose_clock_is_ahead_shares_its_partitions_as_well) {
    ClockAhead ahead;
    ApplicationOptions with = options();
    with.runtime = {.clock = ahead, .log = log};
    Application first{store, with};
    first.follow<Account>(SumUp{}, in_four);
    for (const char* account : in_order) deposit(first, account, 1);
    ASSERT_TRUE(first.wait_for<SumUp>(Receipt{}, patience));
    Application second{store, options()};
    second.follow<Account>(SumUp{}, in_four);
    wait_until([&] { return count_here(second) > 0; });
    for (const char* account : in_order) deposit(second, account, 1);
    for (Application* bank : {&first, &second}) EXPECT_TRUE(bank->wait_for<SumUp>(Receipt{}, patience));
    EXPECT_EQ(turnover(first), (Turnover{8, 8}));
}

TEST_F(PartitionsStepByStep, go_one_by_one_to_whoever_is_there_when_their_owner_dies) {
    const auto dying = std::make_shared<DyingStore>(store, 400, 0);
    Process owner{dying, world(), SumUp{}, in_four};
    Process other{store, world(), SumUp{}, in_four};
    const auto deposit_to_all = [&] {
        for (const char* account : in_order) other.bank.execute<Account>(account, Deposit{1}).value();
    };
    deposit_to_all();
    for (const char* name : {"turnover#1", "turnover#2"}) owner.turn_of(name);
    for (const char* name : {"turnover#1", "turnover#2", "turnover#3", "turnover#4"}) other.turn_of(name);
    const auto states = [&] {
        Lines found;
        for (const FollowerStatus& one : other.statuses()) found.emplace_back(to_string(one.state));
        return found;
    };
    EXPECT_EQ(states(), (Lines{"elsewhere", "elsewhere", "live", "live"})) << "each has one owner";
    EXPECT_EQ(other.bank.rows<Turnover>().get("all"), (Turnover{4, 4}));
    while (!dying->is_dead()) {
        try {
            owner.turn_of("turnover#1");
        } catch (const Error&) {
        }
    }
    deposit_to_all();
    for (int i = 0; i < 3; ++i) {  // its owner must be seen to be silent
        clock.advance(6s);
        other.bank.locks().beat();
        for (const char* name : {"turnover#1", "turnover#3", "turnover#4"}) other.turn_of(name);
    }
    EXPECT_EQ(states(), (Lines{"live", "elsewhere", "live", "live"}));
    EXPECT_EQ(other.bank.rows<Turnover>().get("all"), (Turnover{7, 7}));
    EXPECT_EQ(other.turn_of("turnover#2"), FollowOptions{}.poll_interval);
    EXPECT_EQ(states(), (Lines{"live", "live", "live", "live"}));
    EXPECT_EQ(other.bank.rows<Turnover>().get("all"), (Turnover{8, 8}));
}

TEST_F(Partitions, take_each_event_once_wherever_their_owner_dies) {
    constexpr int deposits = 40;
    /// Whether it has died before it was done.
    const auto run = [&](int dies_at, std::uint64_t applies) {
        store = open("memory:");
        {
            Application bank{store, options()};
            for (int i = 0; i < deposits; ++i) deposit(bank, in_order[i % 4], 1);
        }
        const auto dying = std::make_shared<DyingStore>(store, dies_at, applies);
        if (!dies_before(deposits, dying, options(), {.batch_max = 7, .partitions = 4})) return false;
        Application heir{store, options()};
        heir.follow<Account>(SumUp{}, in_four);
        catch_up_with(heir, "turnover");
        EXPECT_EQ(turnover(heir), (Turnover{deposits, deposits})) << "died at " << dies_at << ", applied " << applies;
        EXPECT_EQ(turnover(heir, "bob").cents, deposits / 4);
        return !HasFailure();
    };
    int died = 0;
    for (int requests = 1; requests < 240 && !HasFailure(); requests += 24) {
        for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}})
            died += run(requests, applies) ? 1 : 0;
    }
    EXPECT_GT(died, 5) << "it has died so often before it was done";
}

// --- another number ---

TEST_F(Partitions, of_one_are_kept_under_the_names_that_they_have_always_had) {
    {
        Application bank{store, options()};
        bank.follow<Account>(SumUp{});
        bank.subscribe("inbox", [](auto) {});
        catch_up_with(bank, "inbox", deposit(bank, "alice", 1));
        catch_up_with(bank, "turnover");
        EXPECT_GT(bank.locks().inspect("$follower-turnover").holder.fence, 0);
        EXPECT_EQ(bank.locks().inspect("$follower-turnover#1").holder.fence, 0);
        EXPECT_EQ(checkpoints(bank, {"turnover", "turnover#1", "inbox", "inbox#1"}), (Lines{"turnover", "inbox"}));
        for (const char* name : {"turnover", "inbox"}) EXPECT_FALSE(bank.rows<detail::Builds>().get(name)) << name;
    }
    Application next{store, options()};
    next.follow<Account>(SumUp{}, {.partitions = 1});
    catch_up_with(next, "turnover", deposit(next, "alice", 1));
    EXPECT_EQ(turnover(next), (Turnover{2, 2}));
    EXPECT_EQ(next.followers().front().events, 2);
}

TEST_F(Partitions, of_a_subscription_stay_as_many_as_it_began_with) {
    Application first{store, options()};
    first.subscribe("split", [](auto) {}, {.follow = in_four});
    first.subscribe("whole", [](auto) {});
    for (const char* name : {"split", "whole"}) catch_up_with(first, name, deposit(first, "alice", 1));
    Application second{store, options()};
    const auto refused = [&](const char* name, std::size_t partitions) {
        return refusal<ConfigError>([&] {
            second.subscribe(name, [](auto) { FAIL() << "it must not begin"; }, {.follow = {.partitions = partitions}});
        });
    };
    EXPECT_EQ(
        refused("split", 2),
        "the subscription 'split' cannot begin: it was begun with partitions = 4, and this program says 2. Say "
        "FollowOptions::partitions = 4; or end it in all programs and begin another one, under another name, with "
        "SubscribeOptions::after = the smallest position that followers() shows for this one");
    EXPECT_NE(refused("split", 1).find("partitions = 4, and this program says 1"), std::string::npos);
    EXPECT_NE(refused("whole", 4).find("partitions = 1, and this program says 4"), std::string::npos);
    second.subscribe("split", [](auto) {}, {.follow = in_four});
    second.subscribe("whole", [](auto) {});
}

TEST_F(Partitions, of_a_projection_cannot_be_changed_where_its_rows_cannot_be_made_anew) {
    Application first{store, options()};
    first.follow<Account>(SumUp{});
    catch_up_with(first, "turnover", deposit(first, "alice", 1));
    Application second{store, options()};
    const std::string refused = refusal<ConfigError>([&] { second.follow<Account>(SumUp{}, in_four); });
    EXPECT_NE(
        refused.find("the follower 'turnover' was begun with partitions = 1, and this program says 4, which makes "
                     "its rows anew. the projection 'turnover' cannot be rebuilt"),
        std::string::npos)
        << refused;
    EXPECT_NE(refused.find("kept_by = \"turnover\""), std::string::npos) << refused;
    EXPECT_FALSE(second.rows<detail::Builds>().get("turnover"));
    catch_up_with(first, "turnover", deposit(first, "alice", 1));
}

TEST_F(Partitions, in_another_number_make_the_rows_anew_while_all_go_on_and_nobody_goes_back_in_time) {
    const ApplicationOptions with = Following::options();
    Application old{store, with};
    old.follow<Account>(SumPaid<1>{}, {.batch_max = 5, .partitions = 3});
    for (const char* account : in_order) deposit(old, account, 1);
    catch_up_with(old, "paid");
    std::jthread reader{[&](const std::stop_token& is_over) {
        Application bank{store, with};
        std::map<std::string, std::int64_t> last;
        while (!is_over.stop_requested() && !HasFailure()) {
            const std::vector<std::string> keys{"all", "alice", "bob"};
            bank.transact([&](Transaction& tx) {
                    for (const std::string& key : keys) {
                        const std::int64_t deposits = tx.rows<Paid>().get(key).value_or(Paid{}).deposits;
                        EXPECT_GE(deposits, last[key]) << "never back in time";
                        last[key] = std::max(last[key], deposits);
                    }
                })
                .value();
        }
    }};
    std::atomic<int> deposits = 4;
    std::jthread writer{[&](const std::stop_token& is_over) {
        for (; !is_over.stop_requested(); ++deposits)  // no faster than the live rows are kept: they could be outrun
            static_cast<void>(old.wait_for<SumPaid<1>>(deposit(old, in_order[deposits % 4], 1), 1s));
    }};
    Application recent{store, with};
    recent.follow<Account>(SumPaid<1>{}, {.partitions = 2});
    wait_until([&] { return builds_of(recent, "paid").live.number == 2; });
    EXPECT_EQ(builds_of(recent, "paid").live.partitions, 2);
    writer.request_stop();
    writer.join();
    reader.request_stop();
    reader.join();
    const Receipt last = deposit(old, "alice", 1);
    catch_up_with(old, "paid", last);
    catch_up_with(recent, "paid");
    EXPECT_EQ(paid_of(old), (Paid{1, deposits + 1, deposits + 1})) << "each event once";
    EXPECT_TRUE(recent.verify<SumPaid<1>>().differences.empty());
    for (Application* bank : {&old, &recent}) {
        wait_until([&] { return bank->followers().size() == 2; });
        EXPECT_EQ(bank->followers().back().build, 2);
        EXPECT_EQ(bank->followers().back().partitions, 2) << "each program keeps a build as it was begun";
    }
    recent.rebuild<SumPaid<1>>();
    wait_until([&] { return builds_of(recent, "paid").live.number == 3; });
    EXPECT_EQ(builds_of(recent, "paid").live.partitions, 2);
    Application third{store, with};
    third.follow<Account>(SumPaid<1>{});
    wait_until([&] { return builds_of(recent, "paid").live.number == 4; });
    catch_up_with(old, "paid", deposit(old, "alice", 1));
    EXPECT_EQ(builds_of(recent, "paid").live.partitions, 1);
    EXPECT_EQ(paid_of(old), (Paid{1, deposits + 2, deposits + 2}));
}

TEST_F(PartitionsStepByStep, of_a_replaced_build_leave_nothing_behind) {
    Application bank{store, world()};
    const auto deposit_to_all = [&] {
        for (const char* account : in_order) bank.execute<Account>(account, Deposit{1}).value();
    };
    const auto turn_all = [](Process& process, const std::string& build) {
        for (const char* one : {"#1", "#2", "#3", "#4"}) process.turn_of(build + one);
    };
    deposit_to_all();
    constexpr FollowOptions briefly{.partitions = 4, .replaced_rows_kept_for = Duration::zero()};
    {
        Process old{store, world(), SumPaid<1>{}, briefly};
        turn_all(old, "paid");
        ASSERT_EQ(paid_of(bank), (Paid{1, 4, 4}));
    }
    deposit_to_all();
    Process recent{store, world(), SumPaid<2>{}, {.partitions = 3, .replaced_rows_kept_for = Duration::zero()}};
    EXPECT_EQ(recent.statuses().size(), 7u);
    recent.turn_of("paid@2#2");
    recent.turn_of("paid@2#3");
    EXPECT_EQ(builds_of(bank, "paid").live.number, 1) << "the first one sees to it, when all have come so far";
    EXPECT_EQ(recent.statuses()[5].state, FollowerStatus::State::building);
    recent.turn_of("paid@2#1");
    ASSERT_EQ(builds_of(bank, "paid").live.number, 2);
    EXPECT_GE(paid_of(bank).deposits, 4) << "as many as had been taken";
    for (const char* one : {"paid@2#1", "paid@2#2", "paid@2#3"}) recent.turn_of(one);
    EXPECT_EQ(paid_of(bank), (Paid{2, 16, 8}));
    for (int i = 0; i < 20; ++i) recent.keeper.turn();
    EXPECT_TRUE(builds_of(bank, "paid").replaced.empty());
    EXPECT_EQ(checkpoints(bank, {"paid", "paid#1", "paid#2", "paid#3", "paid#4", "paid@2#1", "paid@2#2", "paid@2#3"}),
              (Lines{"paid@2#1", "paid@2#2", "paid@2#3"}));
    for (const char* one : {"paid#1", "paid#2", "paid#3"}) recent.turn_of(one);
    EXPECT_EQ(paid_of(bank), (Paid{2, 16, 8}));
}

TEST_F(PartitionsStepByStep, of_the_next_build_are_not_read_while_one_is_behind) {
    constexpr int accounts = 30;
    constexpr FollowOptions in_two{.partitions = 2};
    const auto narrow = std::make_shared<NarrowStore>(store);
    Application bank{narrow, world()};
    for (int i = 0; i < accounts; ++i) bank.execute<Account>(std::to_string(i), Deposit{1}).value();
    {
        Process old{narrow, world(), SumPaid<1>{}};
        old.turn_of("paid");
        ASSERT_EQ(paid_of(bank).deposits, accounts);
    }
    Process recent{narrow, world(), SumPaid<2>{}, in_two};
    int turns = 0;
    for (; builds_of(bank, "paid").live.number == 1 && turns < 10; ++turns) {
        recent.turn_of("paid@2#1");
        EXPECT_EQ(paid_of(bank).deposits, accounts) << "of whichever build";
        clock.advance(1s);
    }
    EXPECT_GT(turns, 1) << "the first one does not do it alone in one transaction";
    EXPECT_EQ(paid_of(bank), (Paid{2, 2 * accounts, accounts}));
}

TEST_F(PartitionsStepByStep, of_a_paused_rebuild_all_wait) {
    Application bank{store, world()};
    for (const char* account : in_order) bank.execute<Account>(account, Deposit{1}).value();
    {
        Process old{store, world(), SumPaid<1>{}};
        old.turn_of("paid");
    }
    Process recent{store, world(), SumPaid<1>{}, in_four};
    recent.keeper.set_paused(true);
    recent.keeper.turn();
    for (const char* one : {"paid@2#1", "paid@2#2", "paid@2#3", "paid@2#4"}) EXPECT_EQ(recent.turn_of(one), 1s) << one;
    EXPECT_EQ(checkpoints(bank, {"paid@2#1", "paid@2#2", "paid@2#3", "paid@2#4"}), Lines{});
    recent.keeper.set_paused(false);
    recent.keeper.turn();
    for (const char* one : {"paid@2#4", "paid@2#3", "paid@2#2", "paid@2#1"}) recent.turn_of(one);
    EXPECT_EQ(builds_of(bank, "paid").live.number, 2);
    EXPECT_EQ(paid_of(bank), (Paid{1, 4, 4}));
}

// --- two programs that differ, and begin at the same time ---

TEST_F(PartitionsStepByStep, of_a_projection_are_begun_in_one_way_alone) {
    Process whole{store, world(), SumUp{}};
    Process split{store, world(), SumUp{}, in_four};  // when the other one has looked, and taken nothing
    for (const char* account : in_order) whole.bank.execute<Account>(account, Deposit{1}).value();
    const std::string refused = refusal<UnavailableError>([&] { whole.turn_of("turnover"); });
    EXPECT_EQ(refused,
              "build 1 of 'turnover' (version 1) is not kept any more: build 1 (version 1, 4 partitions) is live. "
              "Nothing was written");
    EXPECT_EQ(whole.bank.rows<Turnover>().get("all"), std::nullopt);
    split.turn_of("turnover#1");
    whole.keeper.turn();
    for (const char* one : {"turnover#1", "turnover#2", "turnover#3", "turnover#4"}) whole.turn_of(one);
    split.turn_of("turnover#2");
    EXPECT_EQ(whole.bank.rows<Turnover>().get("all"), (Turnover{4, 4})) << "each program keeps it as it was begun";
}

struct SubscribedStepByStep : PartitionsStepByStep {
    std::vector<std::string> handed;

    detail::Consumer inbox(std::size_t partitions) {
        detail::Consumer consumer{.name = "inbox", .filter = {}, .options = {}, .project = {}, .handle = {}};
        consumer.options.partitions = partitions;
        consumer.handle = [this](std::span<const RecordedEvent> events) {
            for (const RecordedEvent& event : events) handed.push_back(event.stream);
        };
        return consumer;
    }
};

TEST_F(SubscribedStepByStep, are_begun_in_one_way_alone) {
    Process whole{store, world(), inbox(1)};
    Process split{store, world(), inbox(4)};
    for (const char* account : in_order) whole.bank.execute<Account>(account, Deposit{1}).value();
    EXPECT_EQ(whole.turn_of("inbox"), std::nullopt);
    EXPECT_EQ(handed, Lines{});
    EXPECT_EQ(whole.statuses()[0].state, FollowerStatus::State::stopped);
    EXPECT_NE(whole.statuses()[0].error.find("partitions = 4, and this program says 1"), std::string::npos);
    for (const char* one : {"inbox#4", "inbox#3", "inbox#2", "inbox#1"}) split.turn_of(one);
    EXPECT_EQ(handed, (Lines{"account-eve", "account-bob", "account-alice", "account-carol"}));
}

TEST_F(SubscribedStepByStep, note_that_they_have_begun_before_anything_is_handed_over) {
    Process whole{store, world(), inbox(1)};
    whole.turn_of("inbox");
    EXPECT_NE(refusal<ConfigError>([&] { Process(store, world(), inbox(4)); }).find("was begun with partitions = 1"),
              std::string::npos);
}

TEST_F(SubscribedStepByStep, begin_when_the_store_answers_and_have_agreed_on_their_number) {
    const auto hooked = std::make_shared<HookedStore>(store);
    bool is_away = false;
    hooked->before_read = [&] {
        if (is_away) throw UnavailableError("the store is away");
    };
    Application bank{store, world()};
    bank.execute<Account>("alice", Deposit{1}).value();
    Application application{hooked, world()};
    std::atomic<int> idle = 0;
    is_away = true;
    detail::Keeper split{application, idle, inbox(4)};
    detail::Keeper otherwise{application, idle, inbox(3)};
    is_away = false;
    EXPECT_TRUE(split.followers("inbox#1").empty()) << "nobody knows yet who has begun it";
    split.turn();
    for (int i = 0; i < 2; ++i) otherwise.turn();
    EXPECT_TRUE(otherwise.followers("inbox#1").empty());
    std::vector<FollowerStatus> statuses;
    otherwise.add_statuses(statuses);
    EXPECT_EQ(statuses.front().state, FollowerStatus::State::stopped);
    EXPECT_NE(statuses.front().error.find("partitions = 4, and this program says 3"), std::string::npos);
    for (const auto& one : split.followers("inbox")) one->turn({});
    EXPECT_EQ(handed, Lines{"account-alice"});
}

// --- what is refused ---

TEST_F(Partitions, refuse_what_cannot_work) {
    Application bank{store, options()};
    const auto nothing = [](auto) {};
    EXPECT_EQ(refusal<ConfigError>([&] { bank.follow<Account>(SumUp{}, {.partitions = 0}); }),
              "the follower 'turnover' cannot begin: FollowOptions::partitions is 0; it can be split into 1 to 64");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", nothing, {.follow = {.partitions = 65}}); }),
              "the follower 's' cannot begin: FollowOptions::partitions is 65; it can be split into 1 to 64");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s", nothing, {.ephemeral = true, .follow = in_four}); }),
              "the follower 's' cannot begin: it is ephemeral, so that each process takes all events, and there is "
              "nothing to split among them");
    EXPECT_EQ(refusal<ConfigError>([&] { bank.subscribe("s#1", nothing); }),
              "the follower 's#1' cannot begin: names that end in '#' and a number are those of partitions");
    bank.subscribe("s#one", nothing);
}

}  // namespace
}  // namespace varve
