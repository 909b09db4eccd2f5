#include "feed/feed.h"

#include "support/account.h"
#include "transactions/slot.h"

#include <varve/testing/manual_world.h>
#include <varve/varve.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace varve::feed {
namespace {

using transactions::Claim;
using transactions::slot_key;

using namespace account;

using Places = std::vector<std::string>;

struct Followed : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application application{store, options({.transactions = {.strategy = transactions::Strategy::protocol}})};
    Feed feed{*store};

    void deposit(Transaction& tx, const std::string& id) { tx.execute<Account>(id, Deposit{1}); }
    void deposit(const std::string& id, const CommandOptions& options = {}) {
        application.execute<Account>(id, Deposit{1}, options).value();
    }
    void write(const store::Write& one) {
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&one, 1}).front()));
    }
    Places places(store::Position after = 0) {
        Places places;
        for (Batch batch = feed.read(after, 2); !batch.is_last; batch = feed.read(batch.end, 2)) {
            for (const RecordedEvent& event : batch.events) {
                places.push_back(event.stream + "/" + std::to_string(event.version) + "/" +
                                 std::to_string(event.index));
            }
        }
        return places;
    }
};

TEST_F(Followed, events_come_in_the_order_of_their_commits) {
    deposit("a");
    deposit("b");
    deposit("a");
    application.append<Account>("b", {Deposited{1}, Deposited{2}}).value();
    EXPECT_EQ(places(), (Places{"account-a/1/0", "account-b/1/0", "account-a/2/0", "account-b/2/0", "account-b/2/1"}));
    EXPECT_EQ(feed.end(), feed.read(0, 100).end);
    EXPECT_TRUE(feed.read(feed.end(), 100).is_last);
}

TEST_F(Followed, streams_of_the_framework_itself_do_not_appear) {
    deposit("a", {.command_id = "c-1"});
    application
        .transact([&](Transaction& tx) {
            for (const char* key : {"x", "y"}) tx.rows<Balance>().put(key, {1});
        })
        .value();
    later.drain();
    EXPECT_EQ(places(), (Places{"account-a/1/0"}));
}

struct Told {
    std::string whom;
};

TEST_F(Followed, effects_appear_where_they_are_stored_in_the_order_of_their_commits) {
    const auto tell = [](const char* whom) { return [whom](Transaction& tx) { tx.effect(Told{whom}); }; };
    application.transact(tell("ann")).value();
    application
        .transact([&](Transaction& tx) {
            deposit(tx, "a");
            tell("bob")(tx);
            tell("carol")(tx);
        })
        .value();
    deposit("a");
    application.transact(tell("dave"), {.command_id = "c-1"}).value();
    later.drain();
    Places found;
    for (const RecordedEvent& one : feed.read(0, 100, {.effects = true}).events) {
        found.push_back(one.event.data + (one.stream.starts_with("$") ? "" : " at " + one.stream));
        EXPECT_EQ(one.event.type, "Told");
        EXPECT_GT(one.position, 0u);
    }
    EXPECT_EQ(found, (Places{R"({"whom":"ann"})", R"({"whom":"bob"} at account-a)", R"({"whom":"carol"} at account-a)",
                             R"({"whom":"dave"})"}));
    EXPECT_EQ(places(), (Places{"account-a/1/0", "account-a/2/0"})) << "who follows events sees none of them";
}

TEST_F(Followed, a_slot_appears_when_it_is_in_place_and_then_behind_its_cause) {
    application
        .transact([&](Transaction& tx) {
            deposit(tx, "a");
            deposit(tx, "b");
        })
        .value();
    EXPECT_EQ(places(), (Places{"account-a/1/0"})) << "the other one is not in place before its owner has got to it";
    const store::Position seen = feed.end();
    later.drain();
    EXPECT_EQ(places(seen), (Places{"account-b/1/0"})) << "and nobody has missed it who was there before";
    EXPECT_EQ(places(), (Places{"account-a/1/0", "account-b/1/0"}));
}

TEST_F(Followed, what_is_undecided_or_void_does_not_appear) {
    const Claim claim{
        .tx = "t", .primary = slot_key("account-a", 1), .lease = clock.now() + std::chrono::seconds{5}, .priority = {}};
    write(transactions::prepare_slot(slot_key("account-a", 1), 0, claim, {}));
    EXPECT_EQ(places(), Places{});
    write(transactions::undo_slot(slot_key("account-a", 1), "t", 0));
    EXPECT_EQ(places(), Places{});
    deposit("a");
    EXPECT_EQ(places(), (Places{"account-a/1/0"}));
}

TEST_F(Followed, a_slot_that_cannot_be_read_stops_them_but_not_before_what_precedes_it) {
    deposit("a");
    write({slot_key("account-b", 1), store::Put{{{"state", "unheard of"}}}});
    deposit("a");
    const Batch batch = feed.read(0, 100);
    EXPECT_EQ(batch.events.size(), 1u);
    try {
        static_cast<void>(feed.read(batch.end, 100));
        FAIL() << "it was read";
    } catch (const CorruptionError& error) {
        EXPECT_NE(std::string{error.what()}.find("account-b/1"), std::string::npos) << error.what();
    }
    EXPECT_EQ(feed.read(batch.end, 100, {.aggregates = {"other"}}).events.size(), 0u)
        << "who asks for others is not stopped";
}

/// Four writers, of one stream and of two at a time, while somebody reads on and on: what he has seen in the end is all
/// there is, once, each stream in its order.
void expect_that_nothing_is_missed(const std::shared_ptr<store::ItemStore>& store) {
    constexpr int threads = 4;
    constexpr int rounds = 60;
    Application application{store, {.transactions = {.strategy = transactions::Strategy::protocol}}};
    const Feed feed{*store};
    std::map<std::string, std::vector<Version>> seen;
    store::Position at = 0;
    const auto read_on = [&] {
        for (;;) {
            const Batch batch = feed.read(at, 7);
            for (const RecordedEvent& event : batch.events) {
                EXPECT_GT(event.position, at);
                EXPECT_LE(event.position, batch.end);
                seen[event.stream].push_back(event.version);
            }
            at = batch.end;
            if (batch.is_last) return;
        }
    };
    {
        std::atomic<int> running = threads;
        std::vector<std::jthread> writers;
        for (int thread = 0; thread < threads; ++thread) {
            writers.emplace_back([&, thread] {
                for (int i = 0; i < rounds; ++i) {
                    application
                        .transact([&](Transaction& tx) {
                            tx.execute<Account>(std::to_string((thread + i) % 5), Deposit{1});
                            if (i % 2 == 0) tx.execute<Account>(std::to_string((thread + i + 1) % 5), Deposit{1});
                        })
                        .value();
                }
                --running;
            });
        }
        while (running > 0) read_on();
    }
    ASSERT_TRUE(application.settle(std::chrono::minutes{1}));
    read_on();
    std::int64_t events = 0;
    for (int i = 0; i < 5; ++i) {
        std::vector<Version> stored;
        for (const RecordedEvent& event : application.history<Account>(std::to_string(i)).events)
            stored.push_back(event.version);
        EXPECT_EQ(seen["account-" + std::to_string(i)], stored);
        events += static_cast<std::int64_t>(stored.size());
    }
    EXPECT_EQ(events, threads * rounds * 3 / 2);
}

TEST(Followers, miss_nothing_that_many_write_at_a_time_in_memory) {
    expect_that_nothing_is_missed(open("memory:"));
}

}  // namespace
}  // namespace varve::feed
