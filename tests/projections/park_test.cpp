#include "projections/following.h"
#include "support/dying_store.h"
#include "support/hooked_store.h"
#include "support/unordered_store.h"

#include <varve/commands/parked_stream.h>
#include <varve/commands/verified.h>
#include <varve/locks/locks.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

namespace varve {
namespace {

/// Cannot take more than a limit.
struct Limited {
    static constexpr std::string_view name = "turnover";
    std::shared_ptr<std::atomic<int>> limit = std::make_shared<std::atomic<int>>(10);
    void operator()(const Deposited& e, ProjectionContext& context) const {
        if (e.cents > *limit) throw std::runtime_error("too much");
        context.rows<Turnover>().update(context.aggregate_id(), [&](Turnover& row) { row.cents += e.cents; });
    }
};

constexpr FollowOptions park{.on_poison = FollowOptions::OnPoison::park};

struct Parking : FollowingInItsOwnTime {
    const Superstitious sums = {};

    std::vector<std::string> parked(Application& bank) {
        std::vector<std::string> streams;
        for (const ParkedStream& one : bank.parked("turnover"))
            streams.push_back(one.stream + "/" + std::to_string(one.version));
        return streams;
    }
    /// What an account's sum is while nothing is aside.
    void expect_sums_of_events(Application& bank, std::initializer_list<std::string_view> accounts) {
        for (const std::string_view account : accounts) {
            Turnover expected;
            for (const RecordedEvent& recorded : bank.history<Account>(account).events) {
                bank_deposit(recorded, expected);
            }
            EXPECT_EQ(turnover(bank, account), expected) << account;
        }
    }

  private:
    static void bank_deposit(const RecordedEvent& recorded, Turnover& sum) {
        for (const Account::Event& event : EventVariant<Account::Event>::decode(recorded)) {
            const auto* deposited = std::get_if<Deposited>(&event);
            if (deposited == nullptr) continue;
            sum.cents += deposited->cents;
            ++sum.deposits;
        }
    }
};

using Names = std::vector<std::string>;

TEST_F(Parking, sets_the_stream_of_an_event_that_cannot_be_taken_aside_and_takes_all_others) {
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 13L, 4L}) deposit(bank, "alice", cents);
    const Receipt of_bob = deposit(bank, "bob", 5);
    bank.follow<Account>(sums, park);
    catch_up(bank, of_bob);
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{1, 1}));
    EXPECT_EQ(turnover(bank, "bob"), (Turnover{5, 1}));

    const Receipt of_alice = deposit(bank, "alice", 2);
    catch_up(bank, deposit(bank, "bob", 5));
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{1, 1})) << "nor are its later events";
    EXPECT_FALSE(bank.wait_for<Superstitious>(of_alice, 1s)) << "and nobody is told that they had been taken";
    EXPECT_FALSE(bank.wait_for<Superstitious>(Receipt{}, 1s));

    const std::vector<ParkedStream> aside = bank.parked("turnover");
    ASSERT_EQ(aside.size(), 1u);
    EXPECT_EQ(aside[0].stream, "account-alice");
    EXPECT_EQ(aside[0].version, 2);
    EXPECT_EQ(aside[0].type, "Deposited");
    EXPECT_EQ(aside[0].error, "13 is not for us");
    EXPECT_GE(aside[0].since, testing::ManualClock::default_start);
    EXPECT_EQ(status(bank).parked, 1);
    EXPECT_EQ(status(bank).events, 3);
    EXPECT_EQ(status(bank).error, "");
    EXPECT_NE(log.wait_for("aside").find("the follower 'turnover' has set a stream aside at Deposited, version 2 of "
                                         "stream 'account-alice': 13 is not for us"),
              std::string::npos);
}

TEST_F(Parking, a_stream_that_is_taken_up_again_has_each_event_once_and_is_followed_from_then_on) {
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 13L, 4L}) deposit(bank, "alice", cents);
    bank.follow<Account>(sums, park);
    catch_up(bank, deposit(bank, "bob", 5));
    const Receipt last = deposit(bank, "alice", 2);
    *sums.is_mended = true;
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    catch_up(bank, last);
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{20, 4}));
    EXPECT_EQ(parked(bank), Names{});
    EXPECT_EQ(status(bank).parked, 0);

    catch_up(bank, deposit(bank, "alice", 100));
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{120, 5}));
    EXPECT_EQ(bank.retry_parked("turnover"), 0u) << "there is nothing left to take up";
}

TEST_F(Parking, a_stream_that_fails_again_stays_aside_where_it_failed_and_the_others_do_not_wait_for_it) {
    const Limited projection;
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 11L, 2L, 3L, 21L, 4L}) deposit(bank, "alice", cents);
    deposit(bank, "bob", 11);
    const Receipt last = deposit(bank, "carol", 1);
    bank.follow<Account>(projection, park);
    catch_up(bank, last);
    EXPECT_EQ(parked(bank), (Names{"account-alice/2", "account-bob/1"}));

    *projection.limit = 20;
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_EQ(parked(bank), (Names{"account-alice/5"}));
    EXPECT_EQ(turnover(bank, "alice").cents, 17);
    EXPECT_EQ(turnover(bank, "bob").cents, 11);

    *projection.limit = 30;
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_EQ(turnover(bank, "alice").cents, 42);
    EXPECT_EQ(parked(bank), Names{});
}

TEST_F(Parking, what_is_aside_stays_so_for_the_next_owner_and_is_taken_up_by_any) {
    Receipt last;
    {
        Application first{store, options()};
        for (const std::int64_t cents : {1L, 13L}) last = deposit(first, "alice", cents);
        first.follow<Account>(sums, park);
        catch_up(first, deposit(first, "bob", 5));
    }
    ApplicationOptions keeps_its_lock = Following::options();
    keeps_its_lock.locks.time_to_live = 100h;
    Application second{store, keeps_its_lock};
    second.follow<Account>(sums);  // it stops at the next one, which changes nothing about those that are aside
    last = deposit(second, "alice", 2);
    catch_up(second, deposit(second, "bob", 5));
    EXPECT_EQ(turnover(second, "alice"), (Turnover{1, 1}));

    Application third{store, keeps_its_lock};
    *sums.is_mended = true;
    third.follow<Account>(sums);
    EXPECT_EQ(status(third).state, FollowerStatus::State::elsewhere);
    EXPECT_EQ(status(third).parked, 1);
    EXPECT_FALSE(third.wait_for<Superstitious>(last, 1s));
    EXPECT_EQ(third.retry_parked("turnover"), 1u);
    catch_up(third, deposit(third, "alice", 4));
    expect_sums_of_events(third, {"alice", "bob"});
    EXPECT_EQ(turnover(second, "alice"), (Turnover{20, 4}));
}

TEST_F(Parking, streams_are_set_aside_and_taken_up_while_everybody_writes) {
    Application owner{store, Following::options()};
    Application other{store, Following::options()};
    owner.follow<Account>(sums, {.batch_max = 4, .on_poison = FollowOptions::OnPoison::park});
    catch_up(owner, deposit(owner, "alice", 1));
    other.follow<Account>(sums, park);
    std::jthread writer{[&](const std::stop_token& is_over) {
        const auto is_far_ahead = [&] {
            const FollowerStatus now = status(owner);
            return now.end - now.position > 50;
        };
        for (int i = 0; !is_over.stop_requested(); ++i) {
            deposit(owner, i % 2 == 0 ? "alice" : "bob", 1);
            while (!is_over.stop_requested() && is_far_ahead()) std::this_thread::yield();
        }
    }};
    for (int round = 0; round < 20; ++round) {
        *sums.is_mended = false;
        deposit(other, round % 2 == 0 ? "alice" : "bob", poison);
        while (parked(other).empty()) std::this_thread::yield();
        *sums.is_mended = true;
        for (std::size_t live = 0; live == 0;) live = other.retry_parked("turnover");
    }
    writer.request_stop();
    writer.join();
    static_cast<void>(other.retry_parked("turnover"));
    catch_up(owner, deposit(owner, "alice", 1));
    catch_up(owner, deposit(owner, "bob", 1));
    EXPECT_EQ(parked(other), Names{});
    expect_sums_of_events(owner, {"alice", "bob"});
}

TEST_F(Parking, each_event_takes_effect_once_whenever_who_parks_and_takes_up_dies) {
    const auto run = [&](int dies_at, std::uint64_t applies) {
        store = open("memory:");
        *sums.is_mended = false;
        Receipt last;
        {
            Application bank{store, options()};
            for (const std::int64_t cents : {1L, 13L, 2L, 3L}) deposit(bank, "alice", cents);
            last = deposit(bank, "bob", 1);
        }
        const auto dying = std::make_shared<DyingStore>(store, dies_at, applies);
        bool is_done = false;
        try {
            Application owner{dying, options()};
            owner.follow<Account>(sums, {.batch_max = 2, .on_poison = FollowOptions::OnPoison::park});
            while (!dying->is_dead() && !owner.wait_for<Superstitious>(last, 0s)) std::this_thread::yield();
            *sums.is_mended = true;
            is_done = owner.retry_parked("turnover") == 1;
        } catch (const Error&) {
        }
        if (is_done && !dying->is_dead()) return false;
        *sums.is_mended = true;
        Application heir{store, options()};
        heir.follow<Account>(sums);
        catch_up(heir, last);
        static_cast<void>(heir.retry_parked("turnover"));
        catch_up(heir, deposit(heir, "alice", 4));
        EXPECT_EQ(parked(heir), Names{});
        EXPECT_EQ(turnover(heir, "alice"), (Turnover{23, 5})) << "died at " << dies_at << ", applied " << applies;
        EXPECT_EQ(turnover(heir, "bob"), (Turnover{1, 1}));
        return !HasFailure();
    };
    int requests = 1;
    while (run(requests, requests % 2 == 0 ? 0 : ~std::uint64_t{0})) ++requests;
    EXPECT_GT(requests, 30) << "it has died at so many requests";
}

TEST_F(Following, streams_are_set_aside_and_taken_up_where_the_order_of_events_is_a_log) {
    store = std::make_shared<UnorderedStore>(store);
    const Superstitious sums;
    Application bank{store, options()};
    bank.follow<Account>(sums, park);
    // Several slots of a stream, in one batch of the log and in several.
    for (const std::int64_t cents : {1L, 2L, 13L, 4L}) deposit(bank, "alice", cents);
    ASSERT_TRUE(bank.wait_for<Superstitious>(deposit(bank, "bob", 5), patience));
    while (bank.parked("turnover").empty()) std::this_thread::yield();
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{3, 2}));
    const Receipt last = deposit(bank, "alice", 8);
    EXPECT_FALSE(bank.wait_for<Superstitious>(last, patience));
    *sums.is_mended = true;
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    ASSERT_TRUE(bank.wait_for<Superstitious>(last, patience));
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{28, 5}));
    ASSERT_TRUE(bank.wait_for<Superstitious>(deposit(bank, "alice", 16), patience));
    EXPECT_EQ(turnover(bank, "alice"), (Turnover{44, 6}));
    EXPECT_TRUE(bank.verify<Superstitious>().differences.empty());
    EXPECT_EQ(bank.verify<Superstitious>().events, 7);
}

TEST_F(Parking, stops_where_more_streams_would_be_aside_than_are_allowed) {
    Application bank{store, options()};
    for (const char* account : {"alice", "bob", "carol"}) deposit(bank, account, poison);
    bank.follow<Account>(sums, {.on_poison = FollowOptions::OnPoison::park, .parked_max = 2});
    const std::string error = wait_until_stopped(bank, log).error;
    EXPECT_NE(error.find("has stopped at Deposited, version 1 of stream 'account-carol': 13 is not for us; 2 streams "
                         "are set aside already, and FollowOptions::parked_max allows no more"),
              std::string::npos)
        << error;
    EXPECT_EQ(parked(bank), (Names{"account-alice/1", "account-bob/1"}));
}

TEST_F(Parking, a_subscription_is_handed_what_was_aside_in_order_when_it_is_taken_up) {
    Inbox inbox;
    std::atomic<bool> is_mended = false;
    const auto handle = [&](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            if (!is_mended && event.event.data.find("13") != std::string::npos) throw std::runtime_error("no 13");
        }
        inbox(events);
    };
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 13L, 4L}) deposit(bank, "alice", cents);
    const Receipt last = deposit(bank, "bob", 5);
    bank.subscribe("turnover", handle, {.follow = park});
    catch_up(bank, last);
    is_mended = true;
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_EQ(inbox.wait_for(4), (Names{"account-alice/1 Deposited", "account-bob/1 Deposited",
                                        "account-alice/2 Deposited", "account-alice/3 Deposited"}));
    EXPECT_GT(inbox.positions()[2], inbox.positions()[0]) << "and each with its own position";
    EXPECT_LT(inbox.positions()[2], inbox.positions()[1]);
}

/// A subscription that has set alice's second deposit aside.
struct ParkedSubscription : Parking {
    std::atomic<bool> is_mended = false;
    std::function<void(const RecordedEvent&)> when_mended = [](auto&) {};
    Lines taken_up;  // by who takes up, in its thread

    void subscribe(Application& bank) {
        const std::thread::id tests = std::this_thread::get_id();
        const auto handle = [this, tests](std::span<const RecordedEvent> events) {
            const bool takes_up = std::this_thread::get_id() == tests;
            for (const RecordedEvent& event : events) {
                const bool is_poison = event.event.data.find("13") != std::string::npos;
                if (is_poison && !is_mended) throw std::runtime_error("no 13");
                if (!takes_up) continue;
                taken_up.push_back(event.stream + "/" + std::to_string(event.version));
                when_mended(event);
            }
        };
        bank.subscribe("turnover", handle, {.follow = park});
    }
};

TEST_F(ParkedSubscription, may_execute_commands_also_when_it_takes_up_what_was_aside) {
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 13L, 4L}) deposit(bank, "alice", cents);
    subscribe(bank);
    catch_up(bank, deposit(bank, "bob", 5));
    is_mended = true;
    when_mended = [&](const RecordedEvent&) { deposit(bank, "carol", 1); };
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_EQ(taken_up, (Lines{"account-alice/2", "account-alice/3"}));
    EXPECT_EQ(bank.load<Account>("carol").version, 2);
}

TEST_F(ParkedSubscription, gets_what_was_aside_once_while_its_follower_goes_on) {
    ApplicationOptions keeps_its_lock = Following::options();
    keeps_its_lock.locks.time_to_live = 100h;
    Application owner{store, keeps_its_lock};
    for (const std::int64_t cents : {1L, 13L, 4L}) deposit(owner, "alice", cents);
    const auto cannot_take_13 = [](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) {
            if (event.event.data.find("13") != std::string::npos) throw std::runtime_error("no 13");
        }
    };
    owner.subscribe("turnover", cannot_take_13, {.follow = park});
    while (parked(owner).empty()) std::this_thread::yield();
    Application other{store, keeps_its_lock};
    subscribe(other);
    is_mended = true;
    int more = 3;
    when_mended = [&](const RecordedEvent&) {
        if (--more < 0) return;
        deposit(owner, "alice", 1);
        catch_up(owner, deposit(owner, "bob", 1));
    };
    EXPECT_EQ(other.retry_parked("turnover"), 1u);
    EXPECT_EQ(taken_up,
              (Lines{"account-alice/2", "account-alice/3", "account-alice/4", "account-alice/5", "account-alice/6"}));
    EXPECT_EQ(parked(owner), Names{});
}

TEST_F(ParkedSubscription, cannot_end_itself_from_its_handler_when_it_takes_up_what_was_aside) {
    Application bank{store, options()};
    for (const std::int64_t cents : {1L, 13L}) deposit(bank, "alice", cents);
    subscribe(bank);
    catch_up(bank, deposit(bank, "bob", 5));
    is_mended = true;
    std::string refused;
    when_mended = [&](auto&) { refused = refusal<InvalidError>([&] { bank.unfollow("turnover"); }); };
    EXPECT_EQ(bank.retry_parked("turnover"), 1u);
    EXPECT_NE(refused.find("cannot be ended from its own handler"), std::string::npos) << refused;
}

TEST_F(ParkedSubscription, calls_its_handler_no_more_once_it_has_ended) {
    const auto hooked = std::make_shared<HookedStore>(store);
    Application bank{hooked, options()};
    for (const char* account : {"alice", "bob"}) deposit(bank, account, poison);
    subscribe(bank);
    catch_up(bank, deposit(bank, "carol", 5));
    ASSERT_EQ(parked(bank).size(), 2u);
    is_mended = true;
    bool is_handled = false;
    when_mended = [&](auto&) { is_handled = true; };
    hooked->before_read = [&, here = std::this_thread::get_id()] {
        if (std::this_thread::get_id() != here || !std::exchange(is_handled, false)) return;
        std::thread{[&] { bank.unfollow("turnover"); }}.join();
    };
    static_cast<void>(bank.retry_parked("turnover"));
    EXPECT_EQ(taken_up, Lines{"account-alice/1"});
    EXPECT_TRUE(bank.followers().empty());
}

/// Says what it is told to.
struct Fails {
    static constexpr std::string_view name = "turnover";
    std::string text;
    void operator()(const Deposited& e, ProjectionContext&) const {
        if (e.cents == poison) throw std::runtime_error(text);
    }
};

TEST_F(Parking, an_error_that_cannot_be_stored_is_cut_and_stops_nobody) {
    for (const std::string& what :
         {std::string{"caf\xe9"}, "caf" + std::string(400'000, 'e'), "caf" + std::string(1020, 'e') + "\xc3\xa9"}) {
        store = open("memory:?item_bytes_max=100000");
        Application bank{store, options()};
        deposit(bank, "alice", poison);
        bank.follow<Account>(Fails{what}, park);
        catch_up(bank, deposit(bank, "bob", 5));
        ASSERT_EQ(parked(bank), Names{"account-alice/1"});
        EXPECT_EQ(bank.retry_parked("turnover"), 0u);
        const std::string error = bank.parked("turnover").front().error;
        EXPECT_EQ(error.substr(0, 3), "caf");
        EXPECT_LE(error.size(), 1100u);
        bank.unfollow("turnover");

        bank.follow<Account>(Fails{what});
        deposit(bank, "carol", poison);
        while (status(bank).state != FollowerStatus::State::stopped) std::this_thread::yield();
        EXPECT_NE(status(bank).error.find("version 1 of stream 'account-carol': caf"), std::string::npos);
        testing::ManualClock still;
        Application other{store, {.sweep = false, .runtime = {.clock = still, .log = log}}};
        while (!status(bank).owner.empty()) std::this_thread::yield();
        const Lock elsewhere = other.locks().acquire("$follower-turnover", {.wait = Locks::for_ever});
        other.follow<Account>(Fails{what});
        EXPECT_EQ(status(other).error, status(bank).error) << "and other processes can read why";
    }
}

TEST_F(Parking, refuses_what_cannot_work) {
    std::promise<std::string> refused;
    Application bank{store, options()};
    bank.subscribe("self", [&](auto) { refused.set_value(refusal<InvalidError>([&] { bank.retry_parked("self"); })); });
    deposit(bank, "alice", 1);
    EXPECT_NE(refused.get_future().get().find("cannot take up what it has set aside from its own handler"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { bank.retry_parked("x"); }).find("there is no follower 'x'"),
              std::string::npos);
    EXPECT_NE(refusal<InvalidError>([&] { static_cast<void>(bank.parked("x")); }).find("there is no follower 'x'"),
              std::string::npos);
    EXPECT_NE(refusal<ConfigError>([&] {
                  bank.follow<Account>(sums, {.on_poison = FollowOptions::OnPoison::park, .parked_max = 0});
              }).find("FollowOptions::parked_max is 0"),
              std::string::npos);
}

}  // namespace
}  // namespace varve
