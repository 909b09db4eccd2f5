#include "support/hooked_store.h"
#include "support/later.h"

#include <varve/core/error.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/transactions/reservation.h>
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
    Later later;
    Options options;
    Coordinator coordinator{store, {clock, Random::system(), Log::standard_error()}, later, options};
    const Time since = clock.now();

    Reserving() { store.ensure_table(events_table()); }

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

TEST_F(Reserving, gives_up_when_a_stream_has_moved_on_for_a_whole_lease) {
    store.before_write = [&, version = Version{0}](auto) mutable {
        append("a", ++version);
        clock.advance(milliseconds{100});
    };
    Reservation reservation{coordinator, "t", since};
    EXPECT_THROW(reservation.hold("a"), BlockedError);
    EXPECT_LE(clock.now(), since + options.lease + milliseconds{100});
}

TEST_F(Reserving, keeps_what_it_holds_from_expiring_while_it_waits_for_more) {
    const Claim older{.tx = "o",
                      .primary = slot_key("z", 1),
                      .primary_epoch = 0,
                      .lease = since + 10 * options.lease,
                      .priority = since - options.lease};
    const store::Key in_the_way = slot_key("b", 1);
    const store::Write prepare = prepare_slot(in_the_way, 0, older, {});
    static_cast<void>(inner->write({&prepare, 1}));

    std::size_t renewals = 0;
    Reservation reservation{coordinator, "t", since};
    reservation.hold("a");
    store.before_write = [&](std::span<const store::Write> writes) {
        renewals += writes.front().key == slot_key("a", 1);
    };
    store.before_read = [&] {  // each time it looks whether the older one is still there
        EXPECT_GT(claim(slot_key("a", 1))->lease, clock.now());
    };
    EXPECT_THROW(reservation.hold("b"), BlockedError);
    EXPECT_GE(clock.now(), since + options.lease) << "it did not wait";
    EXPECT_GE(renewals, 1u);
    EXPECT_LE(renewals, 3u);
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
    EXPECT_EQ(coordinator.resolver().end(claim), Verdict::aborted);
    EXPECT_FALSE(reservation.is_alive());
    const store::Write fence = fence_free_slot(slot_key("b", 1), 0);
    store.before_write = [&, done = false](auto) mutable {
        if (!std::exchange(done, true)) static_cast<void>(inner->write({&fence, 1}));
    };
    EXPECT_THROW(reservation.hold("b"), BlockedError);
}

}  // namespace
}  // namespace varve::transactions
