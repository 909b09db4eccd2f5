#include "feed/sequencer.h"

#include "events/sequenced.h"
#include "support/dying_store.h"
#include "support/hooked_store.h"
#include "transactions/sweeper.h"

#include <varve/testing/counting_store.h>
#include <varve/testing/seeded_random.h>

#include <atomic>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace varve::feed {
namespace {

TEST_F(Sequenced, slots_get_their_places_in_the_order_of_their_commits) {
    Application bank{store, options()};
    for (const char* id : {"b", "a", "b"}) {
        deposit(bank, id);
        put_in_order();
    }
    EXPECT_EQ(places(*store), (Places{"account-b/1", "account-a/1", "account-b/2"}));
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sequenced, all_slots_of_a_transaction_appear_by_whichever_way_it_commits) {
    for (const Strategy strategy : {Strategy::automatic, Strategy::protocol}) {
        Application bank{store, by(strategy)};
        deposit_together(bank, {"a", "b", "c"});
        deposit(bank, "a", {.command_id = "c-" + std::to_string(static_cast<int>(strategy))});
        bank.append<Account>("b", {Deposited{1}, Deposited{2}}).value();
        put_in_order();
        EXPECT_EQ(standing_bells(*store), 0u);
    }
    EXPECT_EQ(places(*store).size(), 10u);
    expect_each_once_in_order(*store);
}

struct Written {
    std::string whom;
};

TEST_F(Sequenced, effects_without_events_get_a_place_and_who_follows_events_sees_none_of_them) {
    Application bank{store, options()};
    deposit(bank, "a");
    bank.transact([](Transaction& tx) { tx.effect(Written{"ann"}); }).value();
    bank.transact([](Transaction& tx) { tx.effect(Written{"bob"}); }, {.command_id = "c-1"}).value();
    bank.transact([](Transaction& tx) { tx.rows<Balance>().put("a", {1}); }, {.command_id = "c-2"}).value();
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    const Feed feed{*store};
    EXPECT_EQ(feed.end(), 3u);
    EXPECT_EQ(feed.read(0, 10, {.effects = true}).events.size(), 2u);
    EXPECT_EQ(feed.read(0, 10).events.size(), 1u);
}

TEST_F(Sequenced, effects_whose_bell_was_never_rung_appear_when_a_scan_has_come_by) {
    const store::Write old{slot_key("$tx-old", 1),
                           store::Put{{{"state", "committed"},
                                       {"write_id", "old"},
                                       {"effects", R"([{"type":"Written","data":{"whom":"ann"}}])"}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&old, 1}).front()));
    Sweeper sweeper{coordinator, {}, {.page_interval = 0ms, .pause = 0ms}};
    sweeper.sweep();
    put_in_order();
    const std::vector<RecordedEvent> effects = Feed{*store}.read(0, 10, {.effects = true}).events;
    ASSERT_EQ(effects.size(), 1u);
    EXPECT_EQ(effects.front().id, "old:0");
}

TEST_F(Sequenced, a_thousand_slots_of_one_stream_come_at_once_and_in_pieces) {
    Application bank{store, options()};
    for (int i = 0; i < 2500; ++i) deposit(bank, "a");
    for (int i = 0; i < 30; ++i) deposit(bank, "b" + std::to_string(i));
    put_in_order();
    expect_each_once_in_order(*store);
    EXPECT_EQ(places(*store, 700).size(), 2530u);
}

TEST_F(Sequenced, who_asks_for_one_aggregate_gets_the_same_places) {
    Application bank{store, options()};
    for (const char* id : {"a", "b", "c"}) deposit(bank, id);
    put_in_order();
    EXPECT_TRUE(Feed{*store}.read(0, 10, {.aggregates = {"other"}}).events.empty());
    EXPECT_EQ(Feed{*store}.read(0, 10, {.aggregates = {"other"}}).end, 3u);
    EXPECT_EQ(Feed{*store}.read(1, 1, {.aggregates = {"account"}}).events.front().position, 2u);
}

TEST_F(Sequenced, the_bell_of_a_dead_writer_goes_with_a_fence_when_its_lease_is_over) {
    static_cast<void>(store->write(std::vector{ring(bell_of("dead", slot_key("account-a", 1), 0, 1))}));
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 1u) << "it may still write";
    clock.advance(coordinator.options().lease);
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    const store::Write late = commit_free_slot(slot_key("account-a", 1), 0, {.write_id = "dead", .payload = {}});
    EXPECT_TRUE(std::holds_alternative<store::Refused>(store->write({&late, 1}).front())) << "and cannot any more";
    Application bank{store, options()};
    deposit(bank, "a");
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
}

TEST_F(Sequenced, two_dead_writers_of_one_slot_do_not_keep_the_others_from_being_put_in_order) {
    const store::Key slot = slot_key("account-a", 1);
    static_cast<void>(
        store->write(std::vector{ring(bell_of("dead", slot, 0, 1)), ring(bell_of("dead too", slot, 0, 1))}));
    put_in_order();
    clock.advance(coordinator.options().lease);
    Application bank{store, options()};
    deposit(bank, "b");
    put_in_order();
    EXPECT_EQ(standing_bells(*store), 0u);
    EXPECT_EQ(places(*store), Places{"account-b/1"});
}

TEST_F(Sequenced, a_slot_without_a_bell_appears_when_its_stream_is_written_again_or_by_a_scan) {
    Application bank{store, options()};
    const store::Item payload = [&] {
        deposit(bank, "model");
        const store::Key key = slot_key("account-model", 1);
        return std::get<Committed>(decode_slot(key, store->read({&key, 1}).front())).payload;
    }();
    put_in_order();
    const auto write_unannounced = [&](const std::string& stream) {
        const store::Write write = commit_free_slot(slot_key(stream, 1), 0, {.write_id = "w", .payload = payload});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&write, 1}).front()));
    };
    write_unannounced("account-a");
    write_unannounced("account-b");
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-model/1"});
    deposit(bank, "a");
    put_in_order();
    EXPECT_EQ(places(*store), (Places{"account-model/1", "account-a/1", "account-a/2"}));
    EXPECT_TRUE(bank.settle(1min));
    put_in_order();
    EXPECT_EQ(places(*store).size(), 4u);
    expect_each_once_in_order(*store);
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sequenced, a_writer_whose_slot_was_fenced_rings_anew_with_its_next_try) {
    const auto hooked = std::make_shared<HookedStore>(store);
    Application writer{hooked, options()};
    int tries = 0;
    hooked->before_write = [&](std::span<const store::Write> writes) {
        if (writes.front().key != slot_key("account-a", 1)) return;
        if (++tries == 1) static_cast<void>(store->write(std::vector{fence_free_slot(slot_key("account-a", 1), 0)}));
        if (tries == 2) put_in_order();
    };
    deposit(writer, "a");
    EXPECT_EQ(tries, 2);
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"}) << "its first bell was gone by then";
}

TEST_F(Sequenced, a_sequencer_that_sleeps_over_its_watermarks_does_not_lower_them) {
    Application bank{store, options()};
    const auto hooked = std::make_shared<HookedStore>(store);
    Coordinator sleepy{*hooked, {.clock = clock}, later, {}, 1};
    Sequencer sleeper{sleepy};
    bool sleeps = true;
    hooked->before_write = [&](std::span<const store::Write> writes) {
        if (writes.front().key.table != watermarks_table().name || !std::exchange(sleeps, false)) return;
        for (const char* id : {"a", "b"}) {
            deposit(bank, id);
            put_in_order();
        }
    };
    deposit(bank, "a");
    sleeper.round();
    EXPECT_FALSE(sleeps);
    deposit(bank, "a");
    Sequencer next{coordinator};
    while (next.round()) {
    }
    EXPECT_EQ(places(*store), (Places{"account-a/1", "account-a/2", "account-b/1", "account-a/3"}));
}

/// Of a batch only the first write gets through; where that is a bell, none.
struct BellsAreLost final : testing::PassingStore {
    using PassingStore::PassingStore;
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        std::vector<store::WriteAnswer> answers(writes.size(), Failure{ErrorKind::unavailable, true, "out of order"});
        if (writes.front().key.table != bells_table().name) answers.front() = inner().write(writes.first(1)).front();
        return answers;
    }
};

TEST_F(Sequenced, what_its_owner_never_acknowledged_and_learns_to_be_committed_is_announced) {
    Application bank{store, options()};
    Application unlucky{std::make_shared<BellsAreLost>(store), options({.transactions = {.answer_time_max = 1s}})};
    try {
        deposit(unlucky, "a");
        FAIL() << "it was acknowledged";
    } catch (const InDoubtError& error) {
        EXPECT_NE(std::string{error.what()}.find("could not be announced"), std::string::npos) << error.what();
        EXPECT_EQ(bank.resolve(error.handle()), Verdict::committed);
    }
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
}

TEST_F(Sequenced, what_is_acknowledged_to_who_repeats_it_under_its_id_is_announced) {
    const ApplicationOptions impatient =
        options({.transactions = {.strategy = Strategy::protocol, .answer_time_max = 1s}});
    Application bank{store, options()};
    Application unlucky{std::make_shared<BellsAreLost>(store), impatient};
    const CommandOptions once{.command_id = "once"};
    EXPECT_THROW(deposit(unlucky, "a", once), InDoubtError);
    put_in_order();
    EXPECT_EQ(places(*store), Places{}) << "nobody has rung";
    EXPECT_THROW(deposit(unlucky, "a", once), UnavailableError) << "nor can it be acknowledged so";
    EXPECT_TRUE(deposit(bank, "a", once).repeated);
    later.drain();
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
    EXPECT_EQ(standing_bells(*store), 0u);
}

/// Does not show yet what was written there.
struct LateStore final : testing::PassingStore {
    using PassingStore::PassingStore;
    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        std::vector<std::optional<store::Item>> items = inner().read(keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (is_late(keys[i])) items[i].reset();
        }
        return items;
    }
    store::Page query(const store::Query& query) override {
        store::Page page = inner().query(query);
        std::erase_if(page.records, [&](const store::Record& record) { return is_late(record.key); });
        return page;
    }
    bool is_late(const store::Key& key) const { return late == key.partition && key.table == events_table().name; }
    std::string late;  // stream
};

TEST_F(Sequenced, a_slot_of_an_atomic_request_that_shows_a_moment_later_is_waited_for) {
    const auto lagging = std::make_shared<LateStore>(store);
    Coordinator of_another{*lagging, {.clock = clock}, later, {}, 1};
    Sequencer reads_early{of_another};
    Application bank{store, options()};
    const auto deposits = [&](const CommandOptions& options) {
        const auto body = [](Transaction& tx) {
            for (const char* id : {"a", "b"}) tx.execute<Account>(id, Deposit{1});
        };
        ASSERT_EQ(bank.transact(body, options).value().path, Path::native);
    };
    deposits({});
    deposits({.command_id = "c-1"});
    lagging->late = "account-b";
    for (int i = 0; i < 3; ++i) {
        while (reads_early.round()) {
        }
        clock.advance(coordinator.options().lease);
    }
    EXPECT_EQ(places(*store), (Places{"account-a/1", "account-a/2"}));
    EXPECT_EQ(standing_bells(*store), 2u);
    lagging->late.clear();
    while (reads_early.round()) {
    }
    EXPECT_EQ(places(*store), (Places{"account-a/1", "account-a/2", "account-b/1", "account-b/2"}));
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST_F(Sequenced, a_bell_of_an_atomic_request_that_was_refused_waits_for_nothing) {
    Bell refused = bell_of("refused", slot_key("account-a", 1), 0, 1);
    refused.beside = {slot_key("account-b", 1)};
    static_cast<void>(store->write(std::vector{ring(refused)}));
    Application bank{store, options()};
    deposit(bank, "a");
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
    EXPECT_EQ(standing_bells(*store), 0u);
}

/// Writers and sequencers take turns at random, each of them stops at some request of some turn, and of what it sends
/// with that request anything may be applied.
void run_with(std::uint64_t seed) {
    testing::ManualWorld world;
    testing::SeededRandom random{seed};
    const auto store = std::make_shared<UnorderedStore>(open("memory:"));
    const auto below = [&](std::uint64_t n) { return random.next() % n; };
    const auto one_that_dies = [&](int within) -> std::shared_ptr<store::ItemStore> {
        if (below(2) == 0) return store;
        return std::make_shared<DyingStore>(store, 1 + static_cast<int>(below(static_cast<std::uint64_t>(within))),
                                            random.next());
    };
    const ApplicationOptions by_protocol =
        world.options({.transactions = {.strategy = below(2) == 0 ? Strategy::protocol : Strategy::automatic,
                                        .answer_time_max = 1s}});
    Application{store, by_protocol}.execute<Account>("0", Deposit{1}).value();
    std::map<std::string, std::set<Version>> acknowledged;
    unsigned shards = 1;
    struct One {
        std::shared_ptr<store::ItemStore> store;
        Coordinator coordinator;
        Sequencer sequencer{coordinator};
        One(std::shared_ptr<store::ItemStore> of, testing::ManualWorld& world)
            : store(std::move(of)), coordinator(*store, {.clock = world.clock}, world.later, {}, 1) {}
    };
    std::unique_ptr<One> sequencers[2];
    for (int turn = 0; turn < 40; ++turn) {
        try {
            switch (below(5)) {
                case 0:
                case 1: {
                    ApplicationOptions raising = by_protocol;
                    if (below(8) == 0) raising.feed_shards = shards += static_cast<unsigned>(below(3));
                    Application writer{one_that_dies(30), raising};
                    for (std::uint64_t i = below(4); i < 4; ++i) {
                        const auto receipt = writer.transact([&](Transaction& tx) {
                            for (std::uint64_t id = below(3), last = below(3); id <= last; ++id)
                                tx.execute<Account>(std::to_string(id), Deposit{1});
                        });
                        for (const auto& [stream, version] : receipt->written) acknowledged[stream].insert(version);
                    }
                    if (below(2) == 0) world.later.drain();
                    break;
                }
                case 2:
                case 3: {
                    std::unique_ptr<One>& one = sequencers[below(2)];
                    if (!one || below(4) == 0) one = std::make_unique<One>(one_that_dies(60), world);
                    for (std::uint64_t rounds = below(3) + 1; rounds > 0 && one->sequencer.round(); --rounds) {
                    }
                    break;
                }
                default:
                    world.clock.advance(std::chrono::seconds{below(2) * 10});
                    if (below(5) == 0) {
                        EXPECT_TRUE((Application{store, by_protocol}.settle(1min)));
                    }
            }
        } catch (const Error&) {  // that one is dead
        }
        if (below(3) != 0) continue;
        for (std::unique_ptr<One>& one : sequencers) {
            if (below(4) == 0) one.reset();
        }
    }
    // F4: without a scan.
    One last{store, world};
    for (int i = 0; i < 3; ++i) {
        while (last.sequencer.round()) {
        }
        world.clock.advance(1min);
    }
    EXPECT_EQ(standing_bells(*store), 0u);
    std::map<std::string, std::set<Version>> seen;
    for (const std::string& place : places(*store))
        seen[place.substr(0, place.rfind('/'))].insert(std::stoll(place.substr(place.rfind('/') + 1)));
    for (const auto& [stream, versions] : acknowledged) {
        EXPECT_TRUE(std::ranges::includes(seen[stream], versions)) << stream << " lacks what was acknowledged";
    }
    // And the rest with scans: of what one finalises, the next one sees that it was not announced.
    for (int i = 0; i < 2; ++i) EXPECT_TRUE((Application{store, by_protocol}.settle(10min)));
    while (last.sequencer.round()) {
    }
    expect_each_once_in_order(*store);
    EXPECT_EQ(standing_bells(*store), 0u);
}

TEST(Sequencers, put_each_slot_in_order_once_whoever_stops_wherever) {
    for (std::uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        run_with(seed);
    }
}

TEST(Sequencers, that_run_at_the_same_time_put_each_slot_in_order_once) {
    const std::shared_ptr<store::ItemStore> store = std::make_shared<UnorderedStore>(open("memory:"));
    const auto threads = make_thread_executor(2, {});
    Application bank{store, {.sweep = false}};
    std::atomic<int> writing = 3;
    std::atomic<std::size_t> read = 0;
    {
        std::vector<std::jthread> all;
        for (int writer = 0; writer < 3; ++writer) {
            all.emplace_back([&, writer] {
                for (int i = 0; i < 60; ++i) Sequenced::deposit_together(bank, {std::to_string((writer + i) % 4), "4"});
                --writing;
            });
        }
        for (int i = 0; i < 2; ++i) {
            all.emplace_back([&] {
                Coordinator coordinator{*store, {}, *threads, {}, 1};
                Sequencer sequencer{coordinator};
                while (sequencer.round() || writing > 0 || standing_bells(*store) > 0) {
                }
            });
        }
        all.emplace_back([&] {
            const Feed feed{*store};
            store::Position at = 0;
            while (read < 360) {
                const Batch batch = feed.read(at, 50);
                read += batch.events.size();
                at = batch.end;
            }
        });
    }
    EXPECT_EQ(read, 360u);
    expect_each_once_in_order(*store);
}

TEST_F(Sequenced, a_command_costs_one_write_more_and_no_round_trip) {
    const auto counting = std::make_shared<testing::CountingStore>(store);
    Application bank{counting, by(Strategy::protocol)};
    deposit(bank, "a");
    deposit(bank, "b");
    counting->reset();
    deposit(bank, "a");
    EXPECT_EQ(counting->counts().write_batches, 1u);
    EXPECT_EQ(counting->counts().writes, 2u) << "the slot and the bell";
    counting->reset();
    deposit_together(bank, {"a", "b"});
    EXPECT_EQ(counting->counts().write_batches, 2u);
    EXPECT_EQ(counting->counts().writes, 3u) << "a prepared slot, the primary, the bell";
}

TEST_F(Sequenced, a_round_costs_few_round_trips_for_many_bells) {
    const auto small = std::make_shared<UnorderedStore>(open("memory:?item_bytes_max=409600"));
    Application bank{small, options()};
    const auto counting = std::make_shared<testing::CountingStore>(small);
    Coordinator counted{*counting, {.clock = clock}, later, {}, 1};
    Sequencer of_these{counted};
    of_these.round();
    for (int i = 0; i < 100; ++i) deposit(bank, "a" + std::to_string(i));
    counting->reset();
    EXPECT_TRUE(of_these.round());
    EXPECT_EQ(counting->counts().write_batches, 3u) << "a piece of the log, watermarks, bells";
    EXPECT_EQ(counting->counts().writes, 1u + 100u + 100u);
    EXPECT_EQ(counting->counts().read_batches, 2u + 1u) << "what the bells announce, 40 and then 60; watermarks";
    counting->reset();
    EXPECT_FALSE(of_these.round());
    EXPECT_EQ(counting->counts().writes, 0u);
    EXPECT_EQ(counting->counts().joint_queries, 1u) << "an idle one looks for bells";
    EXPECT_EQ(counting->counts().round_trips(), 1u);
}

TEST_F(Sequenced, who_reads_small_slots_reads_more_of_them_each_time_and_of_large_ones_few) {
    const auto small = std::make_shared<UnorderedStore>(open("memory:?item_bytes_max=409600"));
    Application bank{small, options()};
    Coordinator in_small{*small, {.clock = clock}, later, {}, 1};
    Sequencer of_these{in_small};
    for (int i = 0; i < 1000; ++i) deposit(bank, "a" + std::to_string(i));
    while (of_these.round()) {
    }
    for (int i = 0; i < 60; ++i) bank.append<Account>("large", {Opened{std::string(350'000, 'x')}}).value();
    while (of_these.round()) {
    }
    const auto counting = std::make_shared<testing::CountingStore>(small);
    const Feed feed{*counting};
    counting->reset();
    const Batch batch = feed.read(0, 1000);
    EXPECT_EQ(batch.events.size(), 1000u);
    EXPECT_EQ(counting->counts().read_batches, 6u) << "40, 80, 160, 320 twice, and the last 80";

    counting->reset();
    const Batch large = feed.read(1000, 1000);
    EXPECT_EQ(large.events.size(), 48u) << "16 MiB are enough for one batch";
    EXPECT_EQ(large.end, 1048u);
    EXPECT_EQ(counting->counts().read_batches, 2u) << "40 at a time";
    EXPECT_EQ(places(*small, 500).size(), 1060u);
}

TEST_F(Sequenced, a_gap_in_the_log_and_a_slot_that_is_gone_stop_who_reads_and_say_where) {
    Application bank{store, options()};
    for (const char* id : {"a", "b", "c"}) {
        deposit(bank, id);
        put_in_order();
    }
    const auto failure = [&] {
        try {
            places(*store);
        } catch (const CorruptionError& error) {
            return std::string{error.what()};
        }
        return std::string{"none"};
    };
    const store::Write gone{slot_key("account-c", 1), store::Erase{}};
    static_cast<void>(store->write({&gone, 1}));
    EXPECT_NE(failure().find("names the slot events/account-c/1, and nothing is committed there"), std::string::npos);
    const store::Write gap{{.table = "feed_log", .partition = "0", .sort = std::int64_t{2}}, store::Erase{}};
    static_cast<void>(store->write({&gap, 1}));
    EXPECT_NE(failure().find("has a gap from 2 to feed_log/0/3"), std::string::npos) << failure();
}

TEST_F(Sequenced, what_cannot_be_read_stops_no_other_stream) {
    Application bank{store, options()};
    deposit(bank, "a");
    const std::vector<store::Write> foreign{
        {{.table = "feed_bells", .partition = "0", .sort = "0"}, store::Put{{{"what", "ever"}}}},
        {slot_key("account-b", 1), store::Put{{{"state", "unheard of"}}}},
        ring(bell_of("1", slot_key("account-b", 1), 0, 1))};
    static_cast<void>(store->write(foreign));
    put_in_order();
    EXPECT_EQ(places(*store), Places{"account-a/1"});
}

TEST_F(Sequenced, a_watermark_that_cannot_be_read_stops_no_other_stream_and_no_scan) {
    Application bank{store, options()};
    for (const char* id : {"a", "b", "c"}) deposit(bank, id);
    const store::Write damaged{watermark_key("account-b"), store::Put{{{"version", "unheard of"}}}};
    static_cast<void>(store->write({&damaged, 1}));
    put_in_order();
    Places seen = places(*store);
    std::ranges::sort(seen);
    EXPECT_EQ(seen, (Places{"account-a/1", "account-c/1"}));
    EXPECT_EQ(standing_bells(*store), 1u);
    EXPECT_TRUE(bank.settle(1min));
}

TEST_F(Sequenced, what_can_never_be_settled_keeps_no_other_bells) {
    const auto hooked = std::make_shared<HookedStore>(store);
    Coordinator of_another{*hooked, {.clock = clock}, later, {}, 1};
    Sequencer another{of_another};
    Application bank{store, options()};
    deposit(bank, "a");
    const Claim dead{.tx = "dead",
                     .primary = slot_key("account-z", 1),
                     .primary_epoch = 0,
                     .lease = clock.now(),
                     .priority = clock.now(),
                     .lease_length = {}};
    const store::Key stuck = slot_key("account-b", 1);
    static_cast<void>(store->write(std::vector{prepare_slot(stuck, 0, dead, {}), ring(bell_of("x", stuck, 0, 1))}));
    hooked->after_write = [&](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (writes[i].key == stuck) answers[i] = Failure{ErrorKind::invalid, false, "too large"};
        }
    };
    for (int i = 0; i < 2; ++i) {
        while (another.round()) {
        }
        clock.advance(coordinator.options().lease);
    }
    EXPECT_EQ(standing_bells(*store), 1u) << "its own";
}

TEST_F(Sequenced, a_piece_of_the_log_fits_into_an_item_whatever_the_streams_are_called) {
    const auto small = std::make_shared<UnorderedStore>(open("memory:?item_bytes_max=20000"));
    Application bank{small, options()};
    const std::string long_name(500, '\x01');
    for (int i = 0; i < 30; ++i) deposit(bank, long_name + std::to_string(i));
    Coordinator of_small{*small, {.clock = clock}, later, {}, 1};
    Sequencer one{of_small};
    while (one.round()) {
    }
    EXPECT_EQ(places(*small).size(), 30u);
    EXPECT_EQ(standing_bells(*small), 0u);
}

}  // namespace
}  // namespace varve::feed
