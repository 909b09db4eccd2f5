#include "transactions/reservation.h"

#include "support/hooked_store.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/passing_store.h>
#include <varve/varve.h>

#include <utility>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

using std::chrono::milliseconds;

struct Reserving : ::testing::Test {
    std::shared_ptr<testing::CountingStore> inner = std::make_shared<testing::CountingStore>(open("memory:"));
    HookedStore store{inner};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::Later later;
    Options options;
    Coordinator coordinator{store, {clock, Random::system(), Log::standard_error()}, later, options};
    const Time since = clock.now();

    const store::Key row{"balances", "x"};

    Reserving() {
        store.ensure_table(events_table());
        store.ensure_table({.name = "balances", .partition_attribute = "key"});
    }

    void put(const store::Write& write) {
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    Row stored_row() { return decode_row(row, inner->read({&row, 1}).front()); }
    /// Somebody has a claim on the stream's first slot and lives on.
    void in_the_way_of(const std::string& stream, Time began) {
        put(prepare_slot(slot_key(stream, 1), 0,
                         {.tx = "o",
                          .primary = slot_key("z", 1),
                          .primary_epoch = 0,
                          .lease = since + 10 * options.lease,
                          .priority = began,
                          .lease_length = 10 * options.lease},
                         {}));
    }

    void append(const std::string& stream, Version version) {
        const store::Write write = commit_free_slot(slot_key(stream, version), 0,
                                                    {.write_id = stream + std::to_string(version), .payload = {}});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    }
    std::optional<Claim> claim(const store::Key& key) {
        const auto item = inner->read({&key, 1}).front();
        return item ? claim_on(key, *item) : std::nullopt;
    }
    Slot slot(const store::Key& key) { return decode_slot(key, inner->read({&key, 1}).front()); }
};

TEST_F(Reserving, holds_the_slot_after_the_head_for_a_query_and_a_write) {
    append("a", 1);
    append("a", 2);
    inner->reset();
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    EXPECT_EQ(inner->counts().queries, 1u);
    EXPECT_EQ(inner->counts().round_trips(), 2u);
    EXPECT_EQ(reservation.streams().at("a").key, slot_key("a", 3));
    EXPECT_TRUE(claim(slot_key("a", 3)));
}

TEST_F(Reserving, follows_a_stream_that_has_moved_on_with_the_next_write) {
    inner->reset();
    store.before_write = [&, moved = false](auto) mutable {
        if (!std::exchange(moved, true)) append("a", 1);
    };
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    EXPECT_EQ(reservation.streams().at("a").key, slot_key("a", 2));
    EXPECT_EQ(inner->counts().queries, 1u) << "the refusal shows the new head";
    EXPECT_EQ(inner->counts().read_batches, 0u);
}

TEST_F(Reserving, that_has_fallen_behind_looks_where_the_head_is) {
    store.before_write = [&, version = Version{0}](auto) mutable {
        while (version < 50) append("a", ++version);
    };
    Reservation reservation{coordinator, "t", since};
    inner->reset();
    reservation.hold("a");
    EXPECT_EQ(reservation.streams().at("a").key, slot_key("a", 51));
    EXPECT_EQ(inner->counts().queries, 2u);
}

/// The first page of every query is empty, as the port allows.
struct EmptyFirstPages final : testing::PassingStore {
    using PassingStore::PassingStore;
    store::Page query(const store::Query& query) override {
        if (!query.next) return {.records = {}, .next = "the beginning"};
        store::Query whole = query;
        whole.next.reset();
        return inner().query(whole);
    }
};

TEST_F(Reserving, does_not_take_an_empty_page_for_the_end_of_a_stream) {
    for (Version version = 1; version < 10; ++version) append("a", version);
    EmptyFirstPages pages{inner};
    Coordinator over{pages, {clock, Random::system(), Log::standard_error()}, later, options};
    Reservation reservation{over, "t", since};
    inner->reset();
    reservation.hold("a");
    EXPECT_EQ(reservation.streams().at("a").key, slot_key("a", 10));
    EXPECT_EQ(inner->counts().write_batches, 1u);
}

TEST_F(Reserving, gives_up_when_a_stream_has_moved_on_for_a_whole_lease) {
    store.before_write = [&, version = Version{0}](auto) mutable {
        append("a", ++version);
        clock.advance(milliseconds{100});
    };
    Reservation reservation{coordinator, "t", since};
    EXPECT_THROW(reservation.hold("a"), BlockedError);
    EXPECT_LE(clock.now(), since + coordinator.wait_max() + milliseconds{100});
}

TEST_F(Reserving, keeps_what_it_holds_from_expiring_while_it_waits_for_more) {
    in_the_way_of("b", since + options.lease);
    std::size_t renewals = 0;
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    store.before_write = [&](std::span<const store::Write> writes) {
        renewals += writes.front().key == slot_key("a", 1);
    };
    store.before_read = [&] {  // each time it looks whether the other one is still there
        EXPECT_GT(claim(slot_key("a", 1))->lease, clock.now());
    };
    EXPECT_THROW(reservation.hold("b"), BlockedError);
    EXPECT_GE(clock.now(), since + options.lease) << "it did not wait";
    EXPECT_GE(renewals, 1u);
    EXPECT_LE(renewals, 3u);
}

TEST_F(Reserving, gives_way_to_an_older_one_as_soon_as_it_holds_something) {
    in_the_way_of("b", since - options.lease);
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    EXPECT_THROW(reservation.hold("b"), BlockedError);
    EXPECT_LT(clock.now(), since + options.lease / 2) << "the older one may be waiting for a";
}

TEST_F(Reserving, waits_for_an_older_one_while_it_holds_nothing) {
    in_the_way_of("b", since - options.lease);
    Reservation reservation{coordinator, "t", since};
    EXPECT_THROW(reservation.hold("b"), BlockedError);
    EXPECT_GE(clock.now(), since + options.lease);
}

TEST_F(Reserving, lets_go_of_all_that_it_held_and_of_what_may_yet_arrive) {
    store.after_write = [lost = false](auto, std::vector<store::WriteAnswer>& answers) mutable {
        if (!std::exchange(lost, true)) answers[0] = Failure{ErrorKind::unavailable, true, "no answer"};
    };
    {
        Reservation reservation{coordinator, "t", since};
        reservation.hold("a");
        reservation.hold("b");
        EXPECT_EQ(reservation.streams().size(), 2u);
    }
    for (const char* stream : {"a", "b"}) EXPECT_EQ(std::get<Free>(slot(slot_key(stream, 1))).epoch, 1) << stream;
}

TEST_F(Reserving, stops_when_somebody_has_ended_it) {
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    const Claim claim = this->claim(slot_key("a", 1)).value();
    EXPECT_EQ(coordinator.resolver().resolve(claim), Verdict::aborted);
    EXPECT_FALSE(reservation.is_alive());
    const store::Write undo = undo_slot(slot_key("b", 1), "t", 0);
    store.after_write = [&, lost = false](auto, std::vector<store::WriteAnswer>& answers) mutable {
        if (std::exchange(lost, true)) return;
        answers[0] = Failure{ErrorKind::unavailable, true, "no answer"};
        EXPECT_TRUE(std::holds_alternative<store::Applied>(inner->write({&undo, 1}).front()));
    };
    EXPECT_THROW(reservation.hold("b"), BlockedError);
}

TEST_F(Reserving, takes_a_slot_that_others_came_to_and_left_without_another_look) {
    put(fence_free_slot(slot_key("b", 1), 0));
    Reservation reservation{coordinator, "t", since};
    inner->reset();
    reservation.hold({.streams = {{"b", {}}}});
    EXPECT_EQ(reservation.streams().at("b").epoch, 1);
    EXPECT_EQ(inner->counts().round_trips(), 2u);
}

TEST_F(Reserving, takes_many_streams_that_have_moved_on_together) {
    const std::vector<std::string> streams{"a", "b", "c", "d", "e"};
    Reservation::Wanted wanted{.is_long_ago = true};
    for (const std::string& stream : streams) {
        for (Version version = 1; version < 10; ++version) append(stream, version);
        wanted.streams[stream] = {.head = 3};
    }
    wanted.rows[row] = {.data = "1", .rev = "r"};
    put(write_row(row, {}, {.data = "2", .rev = "s"}));
    for (const bool is_long_ago : {true, false}) {
        Reservation reservation{coordinator, is_long_ago ? "t" : "u", since};
        inner->reset();
        wanted.is_long_ago = is_long_ago;
        reservation.hold(wanted);
        for (const std::string& stream : streams) EXPECT_EQ(reservation.streams().at(stream).key, slot_key(stream, 10));
        EXPECT_EQ(reservation.rows().at(row).data, "2");
        EXPECT_EQ(inner->counts().write_batches, is_long_ago ? 1u : 3u);
    }
}

TEST_F(Reserving, holds_a_row_as_it_was_last_known_with_one_write) {
    put(write_row(row, {}, {.data = "1", .rev = "r"}));
    inner->reset();
    Reservation reservation{coordinator, "t", since};
    reservation.hold({.streams = {{"a", {}}}, .rows = {{row, {.data = "1", .rev = "r"}}}});
    EXPECT_EQ(inner->counts().round_trips(), 1u);
    EXPECT_EQ(reservation.rows().at(row).data, "1");
    ASSERT_TRUE(stored_row().intent);
    EXPECT_TRUE(stored_row().intent->reserved);
}

TEST_F(Reserving, takes_a_row_that_has_moved_on_as_it_is_now) {
    put(write_row(row, {}, {.data = "1", .rev = "r"}));
    put(write_row(row, {.rev = "r"}, {.data = "2", .rev = "s"}));
    Reservation reservation{coordinator, "t", since};
    reservation.hold({.streams = {}, .rows = {{row, {.data = "1", .rev = "r"}}}});
    EXPECT_EQ(reservation.rows().at(row).data, "2");
}

TEST_F(Reserving, leaves_no_trace_on_a_row_that_it_lets_go) {
    for (const Image& image : {Image{}, Image{.data = "1", .rev = "r"}, Image{.rev = "r", .expires = 4'000'000'000}}) {
        if (image.rev) put(write_row(row, decode_row(row, inner->read({&row, 1}).front()).image, image));
        const std::optional<store::Item> before = inner->read({&row, 1}).front();
        {
            Reservation reservation{coordinator, "t", since};
            EXPECT_EQ(reservation.hold(row), image);
            EXPECT_NE(inner->read({&row, 1}).front(), before);
        }
        EXPECT_EQ(inner->read({&row, 1}).front(), before);
        if (image.rev) put({row, store::Erase{}, {}});
    }
}

TEST_F(Reserving, holds_first_and_alone_what_it_failed_at_before) {
    std::vector<std::size_t> writes;
    store.before_write = [&](std::span<const store::Write> some) {
        writes.push_back(some.size());
        if (writes.size() == 1) {
            EXPECT_EQ(some.front().key, slot_key("b", 1));
        }
    };
    Reservation reservation{coordinator, "t", since};
    reservation.hold({.streams = {{"a", {}}, {"b", {}}, {"c", {}}}, .rows = {}, .first = lost_at(slot_key("b", 3))});
    EXPECT_EQ(writes, (std::vector<std::size_t>{1, 2}));
}

/// A transaction that holds a row, up to its commit.
struct HoldingARow : Reserving {
    static constexpr const char* tx = "t";
    const Image before{.data = "1", .rev = "r"};

    HoldingARow() { put(write_row(row, {}, before)); }
    std::variant<Conflict, Commit> commit(std::optional<std::string> after) {
        Reservation reservation{coordinator, tx, since};
        Plan plan;
        if (after) {
            plan.rows.push_back({.key = row, .seen = reservation.hold(row), .after = std::move(after), .held = true});
        } else {
            plan.rows_held.push_back({row, reservation.hold(row)});
        }
        reservation.hand_over();
        return coordinator.commit(plan, tx, since);
    }
};

TEST_F(HoldingARow, writes_it) {
    EXPECT_TRUE(std::holds_alternative<Commit>(commit("2")));
    later.drain();
    EXPECT_EQ(stored_row().image.data, "2");
    EXPECT_EQ(stored_row().image.rev, tx);
    EXPECT_FALSE(stored_row().intent);
}

TEST_F(HoldingARow, leaves_it_as_it_was_if_it_only_read_it) {
    EXPECT_TRUE(std::holds_alternative<Commit>(commit(std::nullopt)));
    later.drain();
    EXPECT_EQ(stored_row().image, before);
    EXPECT_FALSE(stored_row().intent);
}

TEST_F(HoldingARow, does_not_commit_once_somebody_has_ended_it) {
    store.before_write = [&, n = 0](auto) mutable {
        if (++n != 2) return;  // it is held, and is going to be written
        const std::optional<store::Item> item = inner->read({&row, 1}).front();
        EXPECT_EQ(coordinator.resolver().resolve(claim_on(row, item.value()).value()), Verdict::aborted);
        EXPECT_EQ(coordinator.resolver().settle(row, *item), Verdict::aborted);
    };
    EXPECT_TRUE(std::holds_alternative<Conflict>(commit("2")));
    later.drain();
    EXPECT_EQ(stored_row().image, before);
}

// Somebody who read the row while it was only held may clear it long after.
TEST_F(HoldingARow, is_not_undone_by_who_saw_it_before_it_was_written) {
    std::optional<store::Item> seen;
    store.before_write = [&, n = 0](auto) mutable {
        if (++n == 2) seen = inner->read({&row, 1}).front();
    };
    EXPECT_TRUE(std::holds_alternative<Commit>(commit("2")));
    ASSERT_TRUE(decode_row(row, seen).intent->reserved);
    EXPECT_EQ(coordinator.resolver().settle(row, seen.value()), Verdict::committed);
    later.drain();
    EXPECT_EQ(stored_row().image.data, "2");
}

TEST_F(HoldingARow, is_read_by_others_as_it_was_until_it_commits) {
    Reservation reservation{coordinator, tx, since};
    reservation.hold(row);
    for (const Isolation isolation : {Isolation::uncommitted, Isolation::committed, Isolation::snapshot})
        EXPECT_EQ(coordinator.reader().rows({&row, 1}, isolation).front().data, "1");
}

}  // namespace
}  // namespace varve::transactions
