#include "events/stored_slot.h"
#include "support/hooked_store.h"

#include <varve/events/event_store.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>
#include <varve/varve.h>

#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using transactions::Claim;
using transactions::slot_key;

constexpr Time start = testing::ManualClock::default_start;

EventData event(int n) {
    return {.type = "Counted", .schema = 1, .data = "{\"n\":" + std::to_string(n) + "}"};
}

struct Events : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> inner = open("memory:");
    std::shared_ptr<testing::CountingStore> counting = std::make_shared<testing::CountingStore>(inner);
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(counting);
    Application application{store, options()};
    EventStore& events = application.events();

    Version append(const std::string& stream, int n, Expected expected = Expected::any()) {
        return events.append(stream, {event(n)}, expected)->version;
    }
    /// What a foreign hand, a dead owner or a newer program has left.
    void write_by_hand(const store::Write& write) {
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    void write_by_hand(const store::Key& key, store::Item item) { write_by_hand({key, store::Put{std::move(item)}}); }
    std::vector<Version> versions(const std::string& stream) {
        std::vector<Version> found;
        for (const RecordedEvent& one : events.load(stream).events) found.push_back(one.version);
        return found;
    }
    std::string corruption(const std::string& stream) {
        try {
            static_cast<void>(events.load(stream));
        } catch (const CorruptionError& error) {
            return error.what();
        }
        return "none";
    }
};

using Versions = std::vector<Version>;

TEST_F(Events, are_appended_and_loaded_in_order) {
    ASSERT_TRUE(events.append("s", {event(1), event(2)}, Expected::none()));
    clock.advance(std::chrono::seconds{1});
    const auto second = events.append("s", {event(3)}, Expected::exact(1));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->version, 2);
    const Stream stream = events.load("s");
    EXPECT_EQ(stream.head, 2);
    ASSERT_EQ(stream.events.size(), 3u);
    EXPECT_EQ(stream.events[0].event, event(1));
    EXPECT_EQ(stream.events[1].event, event(2));
    EXPECT_EQ(stream.events[2].event, event(3));
    EXPECT_EQ(stream.events[1].version, 1);
    EXPECT_EQ(stream.events[1].index, 1u);
    EXPECT_EQ(stream.events[2].version, 2);
    EXPECT_EQ(stream.events[2].index, 0u);
    EXPECT_EQ(stream.events[2].id, second->write_id + ":" + stream.events[2].stream + ":0");
    EXPECT_EQ(stream.events[2].stream, "s");
}

TEST_F(Events, of_a_part_of_a_stream_are_loaded_with_its_head) {
    for (int n = 1; n <= 5; ++n) append("s", n);
    const Stream part = events.load("s", 2, 4);
    ASSERT_EQ(part.events.size(), 3u);
    EXPECT_EQ(part.events.front().version, 2);
    EXPECT_EQ(events.load("s", 4).events.size(), 2u);
    EXPECT_EQ(events.load("s", 6).events.size(), 0u);
    EXPECT_EQ(events.load("s", 6).head, 5);
    EXPECT_EQ(events.load("s", 9).head, 5);
    EXPECT_EQ(part.head, 5) << "of the whole stream, whatever was asked for";
    EXPECT_THROW(static_cast<void>(events.load("s", 0)), InvalidError);
}

TEST_F(Events, come_in_pages_in_both_directions) {
    ASSERT_TRUE(events.append("s", {event(1), event(2)}, Expected::none()));
    for (int n = 3; n <= 6; ++n) append("s", n);
    const auto pages = [&](std::size_t limit, Order order) {
        std::vector<std::string> found;
        PageOptions options{.limit = limit};
        do {
            StreamPage page = events.load("s", options, order);
            std::string& names = found.emplace_back();
            for (const RecordedEvent& one : page.events)
                names += " " + std::to_string(one.version) + "." + std::to_string(one.index);
            options.next = std::move(page.next);
        } while (!options.next.empty());
        return found;
    };
    using Pages = std::vector<std::string>;
    EXPECT_EQ(pages(2, Order::oldest_first), (Pages{" 1.0 1.1 2.0", " 3.0 4.0", " 5.0"}));
    EXPECT_EQ(pages(2, Order::newest_first), (Pages{" 5.0 4.0", " 3.0 2.0", " 1.0 1.1"}));
    EXPECT_EQ(pages(100, Order::newest_first), (Pages{" 5.0 4.0 3.0 2.0 1.0 1.1"}));
}

TEST_F(Events, are_paged_only_with_a_token_of_their_own_stream_and_order) {
    for (const char* stream : {"s", "t"}) {
        for (int n = 1; n <= 3; ++n) append(stream, n);
    }
    const std::string next = events.load("s", {.limit = 1}).next;
    EXPECT_EQ(events.load("s", {.limit = 1, .next = next}).events.front().version, 2);
    EXPECT_THROW(static_cast<void>(events.load("t", {.limit = 1, .next = next})), InvalidError);
    EXPECT_THROW(static_cast<void>(events.load("s", {.limit = 1, .next = next}, Order::newest_first)), InvalidError);
    EXPECT_THROW(static_cast<void>(events.load("s", {.limit = 1, .next = "x"})), InvalidError);
    EXPECT_THROW(static_cast<void>(events.load("s", {.limit = 0})), InvalidError);
}

TEST_F(Events, of_nobody_are_none) {
    EXPECT_TRUE(events.load("nobody").events.empty());
    EXPECT_TRUE(events.load("nobody", PageOptions{}).events.empty());
    EXPECT_TRUE(events.load("nobody", PageOptions{}, Order::newest_first).next.empty());
    EXPECT_EQ(events.load("nobody").head, 0);
    EXPECT_EQ(events.head("nobody"), 0);
}

TEST_F(Events, have_a_head_that_one_look_tells_whatever_the_streams_length) {
    for (int n = 1; n <= 50; ++n) append("s", n);
    counting->reset();
    EXPECT_EQ(events.head("s"), 50);
    EXPECT_LE(counting->counts().round_trips(), 2u);
}

TEST_F(Events, are_loaded_as_of_a_moment) {
    for (int n = 1; n <= 3; ++n) {
        append("s", n);
        clock.advance(std::chrono::seconds{10});
    }
    EXPECT_EQ(events.load_as_of("s", start - Duration{1}).events.size(), 0u);
    EXPECT_EQ(events.load_as_of("s", start).events.size(), 1u);
    EXPECT_EQ(events.load_as_of("s", start + std::chrono::seconds{19}).events.size(), 2u);
    EXPECT_EQ(events.load_as_of("s", start + std::chrono::hours{1}).events.size(), 3u);
}

TEST_F(Events, before_one_of_an_earlier_time_were_there_at_that_time) {
    append("s", 1);
    clock.jump(-std::chrono::seconds{10});  // another process, whose clock is behind
    append("s", 2);
    EXPECT_EQ(events.load_as_of("s", start - std::chrono::seconds{5}).events.size(), 2u);
}

// ---- expected versions

TEST_F(Events, exact_is_compared_with_the_head) {
    const auto wrong = [&](Version expected) {
        const auto outcome = events.append("s", {event(9)}, Expected::exact(expected));
        EXPECT_FALSE(outcome);
        return outcome.error().actual;
    };
    EXPECT_EQ(append("s", 1, Expected::exact(0)), 1);
    EXPECT_EQ(append("s", 2, Expected::exact(1)), 2);
    EXPECT_EQ(wrong(0), 2);
    EXPECT_EQ(wrong(1), 2);
    EXPECT_EQ(wrong(3), 2) << "beyond the head: it would leave a hole";
    EXPECT_EQ(wrong(1000), 2);
    EXPECT_EQ(versions("s"), (Versions{1, 2}));
}

TEST_F(Events, none_means_a_stream_that_does_not_exist) {
    EXPECT_EQ(append("s", 1, Expected::none()), 1);
    const auto again = events.append("s", {event(2)}, Expected::none());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().actual, 1);
}

TEST_F(Events, exists_means_at_least_one) {
    const auto nothing = events.append("s", {event(1)}, Expected::exists());
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().actual, 0);
    append("s", 1);
    EXPECT_EQ(append("s", 2, Expected::exists()), 2);
}

TEST_F(Events, that_can_never_be_appended_are_refused) {
    EXPECT_THROW(static_cast<void>(events.append("s", {event(1)}, Expected::exact(-1))), InvalidError);
    EXPECT_THROW(static_cast<void>(events.append("s", {}, Expected::any())), InvalidError);
    EXPECT_THROW(static_cast<void>(events.append("$tx-1", {event(1)}, Expected::any())), InvalidError);
    EXPECT_THROW(static_cast<void>(events.append("$cmd-1", {event(1)}, Expected::none())), InvalidError);
    EXPECT_THROW(static_cast<void>(events.append("", {event(1)}, Expected::any())), InvalidError);
    EXPECT_EQ(events.head("s"), 0);
}

TEST_F(Events, of_an_exact_append_that_lost_a_race_are_not_written) {
    append("s", 1);
    bool raced = false;
    store->before_write = [&](auto) {
        if (!std::exchange(raced, true)) append("s", 2);
    };
    const auto outcome = events.append("s", {event(3)}, Expected::exact(1));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().actual, 2);
    EXPECT_EQ(events.load("s").events.back().event, event(2));
}

TEST_F(Events, of_any_append_that_lost_a_race_come_after) {
    bool raced = false;
    store->before_write = [&](auto) {
        if (!std::exchange(raced, true)) append("s", 1);
    };
    EXPECT_EQ(append("s", 2), 2);
}

TEST_F(Events, appended_by_many_threads_are_all_there_without_a_hole) {
    Application busy{inner, {.sweep = false}};
    constexpr int threads = 8;
    constexpr int each = 25;
    {
        std::vector<std::jthread> running;
        for (int t = 0; t < threads; ++t) {
            running.emplace_back([&, t] {
                for (int i = 0; i < each; ++i) {
                    ASSERT_TRUE(busy.events().append("s", {event(t * each + i)}, Expected::any()));
                }
            });
        }
    }
    const Stream stream = busy.events().load("s");
    EXPECT_EQ(stream.head, threads * each);
    ASSERT_EQ(stream.events.size(), static_cast<std::size_t>(threads * each));
    std::set<std::string> data;
    std::set<std::string> ids;
    for (std::size_t i = 0; i < stream.events.size(); ++i) {
        EXPECT_EQ(stream.events[i].version, static_cast<Version>(i + 1));
        data.insert(stream.events[i].event.data);
        ids.insert(stream.events[i].id);
    }
    EXPECT_EQ(data.size(), stream.events.size());
    EXPECT_EQ(ids.size(), stream.events.size());
}

// ---- metadata

TEST_F(Events, carry_their_metadata_and_time) {
    const Metadata metadata{.command_id = "c1",
                            .correlation = "conversation",
                            .causation = "cause",
                            .headers = {{"user", "eve"}, {"ünïcode", "\"quoted\""}}};
    ASSERT_TRUE(events.append("s", {event(1), event(2)}, Expected::none(), metadata));
    append("s", 3);
    const Stream stream = events.load("s");
    EXPECT_EQ(*stream.events[0].metadata, metadata);
    EXPECT_EQ(stream.events[0].metadata, stream.events[1].metadata) << "shared by a slot's events";
    EXPECT_EQ(*stream.events[2].metadata, Metadata{});
    EXPECT_GE(stream.events[0].time, start);
}

TEST_F(Events, of_several_commands_in_one_slot_each_keep_the_metadata_of_their_own) {
    const Metadata first{.command_id = "c1", .correlation = "c1", .causation = {}, .headers = {{"user", "eve"}}};
    const Metadata third{.command_id = {}, .correlation = "k", .causation = "because", .headers = {}};
    write_by_hand(transactions::commit_free_slot(
        slot_key("s", 1), 0,
        {.write_id = "w",
         .payload =
             events::encode_payload({{{event(1), event(2)}, first}, {{event(3)}, {}}, {{event(4)}, third}}, start)}));
    const std::vector<RecordedEvent> found = events.load("s").events;
    ASSERT_EQ(found.size(), 4u);
    const Metadata expected[] = {first, first, {}, third};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(*found[i].metadata, expected[i]) << i;
        EXPECT_EQ(found[i].event, event(static_cast<int>(i) + 1));
        EXPECT_EQ(found[i].index, i);
    }
}

TEST_F(Events, of_several_commands_that_do_not_add_up_are_an_error) {
    for (const char* commands : {R"([{"events":1}])", R"([{"events":3}])", R"([{"events":-1},{"events":3}])"}) {
        const std::string stream = std::string{"s"} + commands;
        store::Item payload = events::encode_payload({event(1), event(2)}, {}, start);
        payload.emplace("commands", commands);
        write_by_hand(transactions::commit_free_slot(slot_key(stream, 1), 0, {.write_id = "w", .payload = payload}));
        EXPECT_NE(corruption(stream).find("commands"), std::string::npos) << corruption(stream);
    }
}

TEST_F(Events, have_ids_of_their_own) {
    ASSERT_TRUE(events.append("s", {event(1), event(1)}, Expected::any()));
    ASSERT_TRUE(events.append("s", {event(1)}, Expected::any()));
    ASSERT_TRUE(events.append("t", {event(1)}, Expected::any()));
    std::set<std::string> ids;
    for (const char* stream : {"s", "t"}) {
        for (const RecordedEvent& one : events.load(stream).events) ids.insert(one.id);
    }
    EXPECT_EQ(ids.size(), 4u);
}

// ---- the world

TEST_F(Events, whose_answer_was_lost_are_recognised_as_ones_own) {
    store->after_write = [lost = false](auto, std::vector<store::WriteAnswer>& answers) mutable {
        if (!std::exchange(lost, true)) answers[0] = Failure{ErrorKind::unavailable, true, "no answer"};
    };
    EXPECT_EQ(append("s", 1, Expected::none()), 1);
    EXPECT_EQ(versions("s"), (Versions{1}));
}

TEST_F(Events, whose_answer_was_lost_are_recognised_although_others_follow) {
    store->after_write = [&, lost = false](auto, std::vector<store::WriteAnswer>& answers) mutable {
        if (std::exchange(lost, true)) return;
        answers[0] = Failure{ErrorKind::unavailable, true, "no answer"};
        append("s", 2);
    };
    EXPECT_EQ(append("s", 1, Expected::none()), 1);
    EXPECT_EQ(versions("s"), (Versions{1, 2}));
}

TEST_F(Events, a_store_that_never_answers_leaves_in_doubt) {
    store->after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        for (auto& answer : answers) answer = Failure{ErrorKind::unavailable, true, "no answer"};
        store->before_read = [] { throw UnavailableError("no answer"); };
    };
    try {
        append("s", 1);
        FAIL();
    } catch (const InDoubtError& error) {
        store->before_read = [] {};
        store->after_write = [](auto, auto&) {};
        EXPECT_EQ(application.resolve(error.handle()), transactions::Verdict::committed);
    }
    EXPECT_EQ(versions("s"), (Versions{1}));
}

// ---- what other hands have left

TEST_F(Events, beyond_a_hole_are_an_error_that_names_it) {
    append("s", 1);
    append("s", 2);
    const store::Write hole{slot_key("s", 1), store::Erase{}};
    write_by_hand(hole);
    EXPECT_NE(corruption("s").find("'s' has a hole: version 1"), std::string::npos) << corruption("s");
    append("t", 1);
    const store::Key third = slot_key("t", 3);
    write_by_hand(third, inner->read(std::array{slot_key("t", 1)}).front().value());
    EXPECT_NE(corruption("t").find("version 2"), std::string::npos) << corruption("t");
    EXPECT_THROW(append("t", 4), CorruptionError) << "nobody builds on it";
}

TEST_F(Events, in_a_slot_of_an_unknown_state_are_an_error_that_names_it) {
    append("s", 1);
    for (const store::Item& item :
         {store::Item{{"state", "staged"}}, store::Item{{"n", std::int64_t{1}}}, store::Item{{"state", "void"}},
          store::Item{{"state", "pending"}}, store::Item{{"state", "committed"}}}) {
        write_by_hand(slot_key("s", 2), item);
        EXPECT_NE(corruption("s").find("events/s/2"), std::string::npos) << corruption("s");
        EXPECT_THROW(append("s", 2), CorruptionError);
        EXPECT_EQ(inner->read(std::array{slot_key("s", 2)}).front(), item) << "and is left alone";
    }
}

TEST_F(Events, in_a_slot_without_readable_events_are_an_error_that_names_it) {
    write_by_hand(slot_key("s", 1), {{"state", "committed"}, {"write_id", "w"}, {"time", std::int64_t{0}}});
    EXPECT_NE(corruption("s").find("version 1 of stream 's'"), std::string::npos) << corruption("s");
    write_by_hand(
        slot_key("t", 1),
        {{"state", "committed"}, {"write_id", "w"}, {"time", std::int64_t{0}}, {"events", R"([{"type":"A","data":)"}});
    EXPECT_NE(corruption("t").find("version 1 of stream 't'"), std::string::npos) << corruption("t");
}

TEST_F(Events, are_read_past_a_void_slot_and_written_into_it) {
    append("s", 1);
    write_by_hand(transactions::fence_free_slot(slot_key("s", 2), 0));
    EXPECT_EQ(events.head("s"), 1);
    EXPECT_EQ(versions("s"), (Versions{1}));
    EXPECT_EQ(append("s", 2, Expected::exact(1)), 2);
    EXPECT_EQ(versions("s"), (Versions{1, 2}));
    write_by_hand(transactions::fence_free_slot(slot_key("t", 1), 0));
    EXPECT_EQ(events.head("t"), 0);
    EXPECT_EQ(append("t", 1, Expected::none()), 1);
}

/// A slot of `stream` that a transaction has prepared.
store::Write prepared(const std::string& stream, Version version) {
    store::Item payload{{"time", std::int64_t{0}}, {"events", R"([{"type":"Prepared","data":{}}])"}};
    return transactions::prepare_slot(slot_key(stream, version), 0,
                                      Claim{.tx = "t1",
                                            .primary = slot_key("primary", 1),
                                            .primary_epoch = 0,
                                            .lease = start + std::chrono::seconds{5},
                                            .priority = start - std::chrono::seconds{5}},
                                      payload);
}

TEST_F(Events, that_are_pending_are_resolved_by_readers_who_write_nothing) {
    append("s", 1);
    write_by_hand(prepared("s", 2));
    clock.advance(std::chrono::hours{1});  // even one that is dead
    counting->reset();
    EXPECT_EQ(versions("s"), (Versions{1}));
    EXPECT_EQ(events.head("s"), 1);
    EXPECT_EQ(events.load("s").head, 1);

    write_by_hand(transactions::commit_free_slot(slot_key("primary", 1), 0, {.write_id = "t1", .payload = {}}));
    EXPECT_EQ(versions("s"), (Versions{1, 2}));
    EXPECT_EQ(events.head("s"), 2);
    EXPECT_EQ(events.load("s").events.back().id, "t1:s:0");
    EXPECT_EQ(counting->counts().writes, 0u);
}

TEST_F(Events, that_are_pending_by_an_aborted_transaction_are_nothing_to_a_reader) {
    write_by_hand(prepared("s", 1));
    write_by_hand(transactions::fence_free_slot(slot_key("primary", 1), 0));
    counting->reset();
    EXPECT_EQ(events.head("s"), 0);
    EXPECT_TRUE(versions("s").empty());
    EXPECT_EQ(counting->counts().writes, 0u);
    EXPECT_EQ(append("s", 1, Expected::none()), 1);
}

TEST_F(Events, are_appended_after_an_older_pending_one_only_once_that_is_settled) {
    write_by_hand(prepared("s", 1));
    const Time before = clock.now();
    EXPECT_EQ(append("s", 1), 1);
    EXPECT_GE(clock.now() - before, std::chrono::seconds{4}) << "it was older, and alive until its lease was over";
}

TEST_F(Events, are_appended_after_an_older_one_that_holds_the_stream_for_longer_than_a_lease) {
    store::Write write = prepared("s", 1);
    std::get<store::Put>(write.action).item["_lease_length"] = std::int64_t{8'000'000};
    write_by_hand(write);
    EXPECT_EQ(append("s", 1), 1);
    EXPECT_GE(clock.now(), start + std::chrono::seconds{8});
}

TEST_F(Events, are_never_appended_after_a_committed_one_that_is_not_finalised) {
    write_by_hand(prepared("s", 1));
    write_by_hand(transactions::commit_free_slot(slot_key("primary", 1), 0, {.write_id = "t1", .payload = {}}));
    EXPECT_EQ(append("s", 2), 2);
    const auto first = inner->read(std::array{slot_key("s", 1)}).front();
    EXPECT_EQ(*store::text(*first, "state"), "committed");
    EXPECT_FALSE(first->contains("_tx"));
}

}  // namespace
}  // namespace varve
