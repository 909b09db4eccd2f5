#include "events/sequenced.h"
#include "support/hooked_store.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/recorded_log.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace varve::feed {
namespace {

std::shared_ptr<store::ItemStore> unordered() {
    return std::make_shared<UnorderedStore>(open("memory:"));
}

/// What an application finds that begins with these options.
unsigned shards_with(const std::shared_ptr<store::ItemStore>& store, std::optional<bool> feed,
                     std::optional<unsigned> shards) {
    const Application application{store, {.sweep = false, .feed = feed, .feed_shards = shards}};
    return read_bell_shards(*store);
}

template <class E>
std::string refusal(const std::shared_ptr<store::ItemStore>& store, std::optional<unsigned> shards) {
    try {
        shards_with(store, std::nullopt, shards);
    } catch (const E& error) {
        return error.what();
    }
    return "none";
}

void set(store::ItemStore& store, store::Item item) {
    store.ensure_table({.name = "varve", .partition_attribute = "name"});
    const store::Write write{feed_setting_key(), store::Put{std::move(item)}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store.write({&write, 1}).front()));
}

TEST(WhetherEventsAreFollowed, is_said_once_for_a_store) {
    const auto is_announced = [](const std::shared_ptr<store::ItemStore>& store, std::optional<bool> feed) {
        return shards_with(store, feed, std::nullopt) > 0;
    };
    const auto without = unordered();
    EXPECT_FALSE(is_announced(without, false));
    EXPECT_FALSE(is_announced(without, std::nullopt));
    EXPECT_TRUE(is_announced(without, true));
    EXPECT_TRUE(is_announced(without, std::nullopt));
    EXPECT_THROW(is_announced(without, false), ConfigError);
    EXPECT_TRUE(is_announced(unordered(), std::nullopt));
    EXPECT_FALSE(is_announced(open("memory:"), true)) << "its order is its own";
}

TEST(TheNumberOfShards, is_kept_with_the_store_and_only_grows) {
    const auto store = unordered();
    EXPECT_EQ(shards_with(store, std::nullopt, std::nullopt), 1u);
    EXPECT_EQ(shards_with(store, std::nullopt, 3), 3u);
    EXPECT_EQ(shards_with(store, std::nullopt, std::nullopt), 3u);
    EXPECT_EQ(shards_with(store, true, 64), 64u);
    EXPECT_EQ(refusal<ConfigError>(store, 8),
              "ApplicationOptions::feed_shards is 8, and this store has 64 shards already, each of which may hold what "
              "is not in order yet: the number can only grow. Leave the option out, or give it at least 64");
    EXPECT_EQ(read_bell_shards(*store), 64u);
    EXPECT_EQ(shards_with(unordered(), std::nullopt, 8), 8u) << "a new one";
}

TEST(TheNumberOfShards, is_one_in_a_store_that_does_not_say_it) {
    const auto store = unordered();
    set(*store, {{"announced", std::int64_t{1}}});
    EXPECT_EQ(shards_with(store, std::nullopt, std::nullopt), 1u);
    EXPECT_EQ(shards_with(store, std::nullopt, 8), 8u);
    set(*store, {{"announced", std::int64_t{1}}, {"shards", std::int64_t{1}}});
    EXPECT_EQ(shards_with(store, std::nullopt, 8), 8u) << "nor where it does";
}

TEST(TheNumberOfShards, means_nothing_where_commits_are_not_announced) {
    EXPECT_EQ(shards_with(open("memory:"), std::nullopt, 8), 0u);
    const auto store = unordered();
    EXPECT_EQ(shards_with(store, false, 8), 0u);
    EXPECT_EQ(shards_with(store, std::nullopt, 8), 0u);
    EXPECT_EQ(shards_with(store, true, 8), 8u);
}

TEST(TheNumberOfShards, that_no_store_can_have_is_refused) {
    for (const unsigned number : {0u, 65u, 4'000'000'000u}) {
        EXPECT_EQ(refusal<ConfigError>(unordered(), number),
                  "ApplicationOptions::feed_shards is " + std::to_string(number) + "; give it 1 to 64");
    }
}

TEST(TheNumberOfShards, that_cannot_be_read_is_damage) {
    for (const store::Value& value :
         {store::Value{"8"}, store::Value{std::int64_t{0}}, store::Value{std::int64_t{65}}}) {
        const auto store = unordered();
        set(*store, {{"announced", std::int64_t{1}}, {"shards", value}});
        for (const std::optional<unsigned> wanted : {std::optional<unsigned>{}, std::optional{8u}}) {
            EXPECT_EQ(
                refusal<CorruptionError>(store, wanted),
                "the item varve/feed has an attribute 'shards' that is no integer from 1 to 64; it was written by "
                "a newer version of varve, by hand, or is damaged");
        }
    }
}

TEST(TheNumberOfShards, is_the_largest_that_two_applications_want_at_the_same_time) {
    for (const unsigned first : {3u, 8u}) {
        const unsigned second = 11 - first;
        const auto store = unordered();
        EXPECT_EQ(shards_with(store, std::nullopt, std::nullopt), 1u);
        const auto hooked = std::make_shared<HookedStore>(store);
        bool meanwhile = true;
        hooked->before_write = [&](std::span<const store::Write> writes) {
            if (writes.front().key != feed_setting_key() || !std::exchange(meanwhile, false)) return;
            EXPECT_EQ(shards_with(store, std::nullopt, first), first);
        };
        const std::string refused = refusal<ConfigError>(hooked, second);
        EXPECT_EQ(refused.find("feed_shards is 3, and this store has 8") != std::string::npos, second == 3) << refused;
        EXPECT_FALSE(meanwhile);
        EXPECT_EQ(read_bell_shards(*store), 8u);
    }
}

TEST(TheNumberOfShards, is_decided_anew_by_who_begins_again_without_an_answer) {
    const auto hooked = std::make_shared<HookedStore>(unordered());
    EXPECT_EQ(shards_with(hooked, std::nullopt, std::nullopt), 1u);
    bool is_lost = true;
    hooked->after_write = [&](std::span<const store::Write>, std::vector<store::WriteAnswer>& answers) {
        if (std::exchange(is_lost, false)) answers.front() = Failure{ErrorKind::in_doubt, true, "no answer in time"};
    };
    EXPECT_EQ(refusal<UnavailableError>(hooked, 8), "no answer in time");
    EXPECT_EQ(shards_with(hooked, std::nullopt, 8), 8u);
}

/// Deposits on one account through an application that wants so many shards.
struct Sharded : Sequenced {
    ApplicationOptions in(unsigned shards) { return options({.feed_shards = shards}); }
    std::size_t bells_in_shard(unsigned number) { return store->query(bells_in(number)).records.size(); }
    void deposit_often(unsigned shards, int times) {
        Application bank{store, in(shards)};
        for (int i = 0; i < times; ++i) deposit(bank, "a");
    }
};

TEST_F(Sharded, bells_of_one_stream_stand_in_all_of_them) {
    deposit_often(8, 400);
    for (unsigned shard = 0; shard < 8; ++shard) EXPECT_GT(bells_in_shard(shard), 15u) << shard;
    EXPECT_EQ(standing_bells(*store), 400u);
    put_in_order();
    EXPECT_EQ(places(*store, 100).size(), 400u);
    expect_each_once_in_order(*store);
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sharded, one_that_runs_learns_of_those_that_another_application_adds) {
    Application old{store, in(1)};
    deposit(old, "a");
    put_in_order();
    EXPECT_FALSE(sequencer.round());
    Application raising{store, in(8)};
    for (int i = 0; i < 30; ++i) {
        deposit(raising, "b" + std::to_string(i));
        deposit(old, "a");
    }
    put_in_order();
    EXPECT_GT(standing_bells(*store), 10u) << "it does not look each time";
    EXPECT_EQ(bells_in_shard(0), 0u);
    clock.advance(1s);
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    EXPECT_EQ(places(*store).size(), 61u);
    expect_each_once_in_order(*store);
}

TEST_F(Sharded, the_same_bell_in_two_of_them_puts_its_slot_in_order_once) {
    Application bank{store, in(64)};
    deposit(bank, "a");
    const store::Key slot = slot_key("account-a", 1);
    const Bell one = bell_for("w", slot, 1);
    const Bell other = bell_for("w", slot, 64);
    ASSERT_NE(one.shard, other.shard);
    ASSERT_EQ(one.name, other.name);
    static_cast<void>(store->write(std::vector{ring(one), ring(other)}));
    EXPECT_EQ(standing_bells(*store), 3u);
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
    EXPECT_EQ(standing_bells(*store), 0u);
    static_cast<void>(store->write(std::vector{ring(other)}));
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"}) << "nor does a late one";
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sharded, the_same_bell_of_a_dead_writer_in_two_of_them_goes_with_one_fence) {
    Application bank{store, in(64)};
    const store::Key slot = slot_key("account-a", 1);
    const Bell one = bell_of("dead", slot, 0, 1);
    const Bell other = bell_of("dead", slot, 0, 64);
    ASSERT_NE(one.shard, other.shard);
    static_cast<void>(store->write(std::vector{ring(one), ring(other)}));
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 2u);
    clock.advance(coordinator.options().lease);
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    deposit(bank, "a");
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
}

TEST_F(Sharded, who_waits_for_all_that_was_acknowledged_waits_for_those_that_were_added) {
    Application bank{store, in(1)};
    const Feed feed{*store};
    const auto is_in_order = [&] { return feed.wait_for({}, clock, clock.steady_now()); };
    EXPECT_TRUE(is_in_order());
    deposit_often(8, 30);
    const std::vector<store::Record> first = store->query(bells_in(0)).records;
    for (const store::Record& record : first)
        static_cast<void>(store->write(std::vector{remove_bell(decode_bell(record.key, record.item))}));
    EXPECT_GT(standing_bells(*store), 0u);
    EXPECT_EQ(bells_in_shard(0), 0u);
    EXPECT_FALSE(is_in_order());
    put_in_order();
    EXPECT_TRUE(is_in_order());
}

TEST_F(Sharded, none_waits_for_one_that_is_full) {
    Application old{store, in(1)};
    for (int i = 0; i < 1000; ++i) deposit(old, "a" + std::to_string(i));
    Application bank{store, in(8)};
    for (int i = 0; i < 50; ++i) deposit(bank, "b" + std::to_string(i));
    const auto in_the_others = [&] { return standing_bells(*store) - bells_in_shard(0); };
    EXPECT_GT(in_the_others(), 10u);
    sequencer.round();  // learns of them
    sequencer.round();
    EXPECT_EQ(in_the_others(), 0u);
    EXPECT_GT(bells_in_shard(0), 500u);
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sharded, one_that_is_full_is_not_read_in_small_pieces_for_the_sake_of_the_others) {
    Application old{store, in(1)};
    for (int i = 0; i < 1000; ++i) deposit(old, "a" + std::to_string(i));
    const Application raising{store, in(64)};
    int rounds = 1;
    while (sequencer.round()) ++rounds;
    EXPECT_LE(rounds, 8) << "200 at a time";
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sharded, let_the_sequencer_pause_where_many_bells_cannot_go) {
    const Application raising{store, in(8)};
    const store::Key slot = slot_key("account-a", 1);
    std::vector<store::Write> writes{{slot, store::Put{{{"written", "by hand"}}}}};
    for (int i = 0; i < 7200; ++i) writes.push_back(ring(bell_for("w" + std::to_string(i), slot, 8)));
    static_cast<void>(store->write(writes));
    for (int pass = 1; pass <= 2; ++pass) {
        int rounds = 1;
        while (rounds < 200 && sequencer.round()) ++rounds;
        EXPECT_LT(rounds, 60) << "pass " << pass;
        EXPECT_GE(rounds, 36) << "it looks at all of them, 200 at a time";
    }
    EXPECT_EQ(standing_bells(*store), 7200u);
}

TEST_F(Sharded, of_which_one_announces_more_than_a_piece_of_the_log_takes_do_not_keep_the_other_waiting) {
    Application old{store, in(1)};
    Application bank{store, in(2)};
    put_in_order();
    for (int i = 0; i < 45; ++i) {
        std::vector<std::string> ids;
        for (int k = 0; k < 50; ++k) ids.push_back(std::to_string(i) + "-" + std::to_string(k));
        deposit_together(old, ids);
    }
    while (bells_in_shard(1) == 0) deposit(bank, "a");
    sequencer.round();
    sequencer.round();  // one of the two has begun with it
    EXPECT_EQ(bells_in_shard(1), 0u);
    EXPECT_GT(bells_in_shard(0), 10u);
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    expect_each_once_in_order(*store);
}

TEST_F(Sharded, give_a_round_no_more_bells_than_one_does) {
    {
        Application old{store, in(1)};
        for (int i = 0; i < 1000; ++i) deposit(old, "a" + std::to_string(i));
        Application bank{store, in(8)};
        for (int i = 0; i < 300; ++i) deposit(bank, "b" + std::to_string(i));
    }
    std::size_t before = standing_bells(*store);
    while (sequencer.round()) {
        const std::size_t after = standing_bells(*store);
        EXPECT_LE(before - after, 200u);
        before = after;
    }
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sharded, cost_a_command_and_an_idle_sequencer_no_round_trip_more) {
    const auto counting = std::make_shared<testing::CountingStore>(store);
    Application bank{counting, in(8)};
    deposit(bank, "a");
    counting->reset();
    deposit(bank, "a");
    EXPECT_EQ(counting->counts().writes, 2u);
    EXPECT_EQ(counting->counts().round_trips(), 1u);

    Coordinator counted{*counting, {.clock = clock}, later, {}, 8};
    Sequencer idle{counted};
    while (idle.round()) {
    }
    counting->reset();
    EXPECT_FALSE(idle.round());
    EXPECT_EQ(counting->counts().joint_queries, 8u);
    EXPECT_EQ(counting->counts().reads, 0u);
    EXPECT_EQ(counting->counts().round_trips(), 1u);
    clock.advance(1s);
    counting->reset();
    EXPECT_FALSE(idle.round());
    EXPECT_EQ(counting->counts().reads, 1u) << "whether there are more";
    EXPECT_EQ(counting->counts().round_trips(), 1u);
}

TEST_F(Sharded, are_not_said_to_be_empty_where_somebody_has_erased_how_many_there_are) {
    testing::RecordedLog log;
    Coordinator logging{*store, {.clock = clock, .log = log}, later, {}, 8};
    Sequencer running{logging};
    deposit_often(8, 30);
    const Feed feed{*store};
    const store::Write erase{feed_setting_key(), store::Erase{}};
    static_cast<void>(store->write({&erase, 1}));
    const std::string damage = "the item varve/feed does not say in how many shards commits are announced";
    try {
        static_cast<void>(feed.wait_for({}, clock, clock.steady_now()));
        ADD_FAILURE() << "it cannot know";
    } catch (const CorruptionError& error) {
        EXPECT_EQ(std::string{error.what()}.substr(0, damage.size()), damage);
    }
    while (running.round()) {
    }
    EXPECT_NE(log.text().find(damage), std::string::npos) << log.text();
    EXPECT_EQ(standing_bells(*store), 0u) << "those that are known go on";
}

TEST_F(Sharded, are_put_in_order_where_their_number_cannot_be_read_any_more) {
    testing::RecordedLog log;
    Coordinator logging{*store, {.clock = clock, .log = log}, later, {}, 8};
    Sequencer running{logging};
    deposit_often(8, 30);
    const store::Item setting = *store->read(std::vector{feed_setting_key()}).front();
    set(*store, {{"announced", std::int64_t{1}}, {"shards", "many"}});
    while (running.round()) {
    }
    EXPECT_NE(log.text().find("the item varve/feed has an attribute 'shards'"), std::string::npos) << log.text();
    EXPECT_EQ(standing_bells(*store), 0u);
    set(*store, setting);
    EXPECT_EQ(places(*store).size(), 30u);
}

}  // namespace
}  // namespace varve::feed
