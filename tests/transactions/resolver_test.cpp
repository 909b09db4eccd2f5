#include "transactions/resolver.h"

#include "support/hooked_store.h"

#include <varve/core/error.h>
#include <varve/store/adapter.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/varve.h>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

using std::chrono::seconds;

const store::Key primary = slot_key("a", 1);
const store::Key other = slot_key("b", 7);
const store::Key row{"rows", "r"};
constexpr Time start = testing::ManualClock::default_start;

Claim claim_of(std::string tx, Epoch primary_epoch = 0, Time priority = start) {
    return {.tx = std::move(tx),
            .primary = primary,
            .primary_epoch = primary_epoch,
            .lease = start + seconds{5},
            .priority = priority};
}

Pending pending_by(const std::string& tx) {
    return {.claim = claim_of(tx), .epoch = 0, .payload = {}};
}

TEST(Judge, committed_by_the_transaction_is_committed) {
    EXPECT_EQ(judge(claim_of("t"), Committed{.write_id = "t", .payload = {}}), Verdict::committed);
    EXPECT_EQ(judge(claim_of("t", 9), Committed{.write_id = "t", .payload = {}}), Verdict::committed);
}

TEST(Judge, free_at_the_expected_epoch_is_undecided) {
    EXPECT_EQ(judge(claim_of("t", 0), Free{0}), Verdict::undecided);
    EXPECT_EQ(judge(claim_of("t", 3), Free{3}), Verdict::undecided);
}

TEST(Judge, pending_by_the_very_transaction_is_undecided) {
    EXPECT_EQ(judge(claim_of("t"), pending_by("t")), Verdict::undecided);
}

TEST(Judge, anything_else_is_aborted_for_ever) {
    EXPECT_EQ(judge(claim_of("t"), Committed{.write_id = "u", .payload = {}}), Verdict::aborted);
    EXPECT_EQ(judge(claim_of("t"), pending_by("u")), Verdict::aborted);
    EXPECT_EQ(judge(claim_of("t", 0), Free{1}), Verdict::aborted);
    EXPECT_EQ(judge(claim_of("t", 3), Free{4}), Verdict::aborted);
}

TEST(Damage, an_item_that_bears_no_claim_where_one_must_be_is_named) {
    try {
        static_cast<void>(claim_there(row, {{"data", "1"}, {"_rev", "r"}}));
        FAIL() << "it bears none";
    } catch (const CorruptionError& error) {
        EXPECT_NE(std::string{error.what()}.find(store::to_string(row)), std::string::npos) << error.what();
    }
}

TEST(Damage, a_key_without_a_version_is_no_slot) {
    EXPECT_THROW(static_cast<void>(version_of(row)), CorruptionError);
}

TEST(Damage, an_intent_that_keeps_an_expiry_but_no_revision_is_refused) {
    const store::Write intent = prepare_row(row, {.data = {}, .rev = "r", .expires = 7}, claim_of("t"), "1");
    store::Item item = store::apply(intent, nullptr).value();
    EXPECT_THROW(static_cast<void>(decode_row(row, item)), CorruptionError);
    item.emplace("_rev", "r");
    EXPECT_EQ(decode_row(row, item).image.expires, 7);
}

struct Settling : ::testing::Test {
    std::shared_ptr<store::ItemStore> inner = open("memory:?item_bytes_max=32768");
    HookedStore store{inner};
    testing::ManualClock clock;
    Metrics metrics;
    Resolver resolver{store, {.clock = clock}, {}, metrics};

    Settling() {
        inner->ensure_table(events_table());
        inner->ensure_table({.name = "rows", .partition_attribute = "key"});
    }
    bool apply(const store::Write& write) {
        return std::holds_alternative<store::Applied>(inner->write({&write, 1}).front());
    }
    std::optional<store::Item> item(const store::Key& key) { return inner->read({&key, 1}).front(); }
    Slot slot(const store::Key& key) { return decode_slot(key, item(key)); }
    std::optional<Epoch> free_epoch(const store::Key& key) {
        const Slot found = slot(key);
        const auto* free = std::get_if<Free>(&found);
        return free ? std::optional{free->epoch} : std::nullopt;
    }
    bool is_committed_by(const store::Key& key, const std::string& tx) {
        const Slot found = slot(key);
        const auto* committed = std::get_if<Committed>(&found);
        return committed != nullptr && committed->write_id == tx;
    }
    Verdict settle(const store::Key& key, std::string_view own = {}) {
        return resolver.settle(key, item(key).value(), own);
    }
    void fence_to(const store::Key& key, Epoch epoch) {
        for (Epoch e = 0; e < epoch; ++e) ASSERT_TRUE(apply(fence_free_slot(key, e)));
    }
    /// Somebody else's action, at the moment when the next write is about to go out.
    void before_the_next_write(std::function<void()> action) {
        store.before_write = [action = std::move(action), done = false](auto) mutable {
            if (!std::exchange(done, true)) action();
        };
    }
    void commit_primary(const std::string& tx) {
        ASSERT_TRUE(apply(commit_free_slot(primary, 0, {.write_id = tx, .payload = {}, .participants = {other, row}})));
    }
};

TEST_F(Settling, another_attempt_of_the_same_command_is_ended_at_sight) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of(attempt_id("t", 2)), {})));
    EXPECT_EQ(settle(other, "t"), Verdict::aborted);
    EXPECT_EQ(free_epoch(primary), 1);
    EXPECT_EQ(free_epoch(other), 1);
    EXPECT_EQ(metrics.fenced, 1u);
    EXPECT_EQ(metrics.undone_for_others, 1u);
}

TEST_F(Settling, who_is_alive_is_not_touched) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    const auto before = item(other);
    EXPECT_EQ(settle(other, "u"), Verdict::undecided);
    EXPECT_EQ(item(other), before);
    EXPECT_EQ(item(primary), std::nullopt);
}

TEST_F(Settling, an_owner_is_taken_for_dead_whose_claim_was_seen_to_stand_still_for_its_lease) {
    Claim claim = claim_of("t");
    claim.lease_length = seconds{7};
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim, {})));
    EXPECT_EQ(settle(other), Verdict::undecided);
    clock.advance(seconds{7} - Duration{1});
    EXPECT_EQ(settle(other), Verdict::undecided);
    claim.lease += seconds{1};
    ASSERT_TRUE(apply(renew_slot(other, claim)));
    clock.advance(Duration{1});
    EXPECT_EQ(settle(other), Verdict::undecided) << "it has been renewed";
    clock.advance(seconds{7});
    EXPECT_EQ(settle(other), Verdict::aborted);
}

TEST_F(Settling, an_owner_is_alive_that_renews_its_claim_although_its_clock_was_set_back) {
    Claim claim = claim_of("t");
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim, {})));
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(settle(other), Verdict::undecided);
        clock.advance(Options{}.lease / 2);
        claim.lease -= seconds{1};
        ASSERT_TRUE(apply(renew_slot(other, claim)));
    }
}

TEST_F(Settling, what_the_wall_clock_says_is_believed_only_where_no_difference_between_clocks_explains_it) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    clock.jump(Options{}.retention / 2);
    EXPECT_EQ(settle(other), Verdict::undecided);
    clock.jump(Options{}.lease);
    EXPECT_EQ(settle(other), Verdict::aborted);
}

TEST_F(Settling, nobody_is_spared_once_its_lease_has_expired) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    EXPECT_EQ(settle(other), Verdict::undecided);
    clock.advance(seconds{5} - Duration{1});
    EXPECT_EQ(settle(other), Verdict::undecided);
    clock.advance(Duration{1});
    EXPECT_EQ(settle(other), Verdict::aborted);
}

TEST_F(Settling, end_spares_nobody_and_is_final) {
    const Claim claim = claim_of("t");
    EXPECT_EQ(resolver.resolve(claim), Verdict::aborted);
    EXPECT_EQ(resolver.resolve(claim), Verdict::aborted);
    EXPECT_EQ(free_epoch(primary), 1) << "the second time there was nothing left to fence";
}

TEST_F(Settling, looking_writes_nothing) {
    const auto counting = std::make_shared<testing::CountingStore>(inner);
    Resolver reader{*counting, {.clock = clock}, {}, metrics};
    clock.advance(seconds{60});
    EXPECT_EQ(reader.look(claim_of("t")).verdict, Verdict::undecided);
    EXPECT_EQ(counting->counts().writes, 0u);
    EXPECT_EQ(counting->counts().round_trips(), 1u);
}

TEST_F(Settling, a_fence_that_loses_against_the_commit_reports_committed) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {{"n", std::int64_t{1}}})));
    before_the_next_write([&] { commit_primary("t"); });
    EXPECT_EQ(settle(other, "t"), Verdict::committed);
    EXPECT_TRUE(is_committed_by(other, "t"));
    EXPECT_EQ(metrics.fenced, 0u);
    EXPECT_EQ(metrics.finalised_for_others, 1u);
}

TEST_F(Settling, a_fence_that_loses_against_the_commit_of_a_prepared_primary_reports_committed) {
    ASSERT_TRUE(apply(prepare_slot(primary, 0, claim_of("t"), {})));
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    before_the_next_write([&] {
        ASSERT_TRUE(apply(commit_pending_slot(primary, {.write_id = "t", .payload = {}, .participants = {other}})));
    });
    EXPECT_EQ(settle(other, "t"), Verdict::committed);
    EXPECT_TRUE(is_committed_by(other, "t"));
}

TEST_F(Settling, a_fence_that_loses_against_another_one_reports_aborted) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    before_the_next_write([&] { fence_to(primary, 1); });
    EXPECT_EQ(settle(other, "t"), Verdict::aborted);
    EXPECT_EQ(free_epoch(primary), 1);
    EXPECT_EQ(free_epoch(other), 1);
}

TEST_F(Settling, a_fence_whose_answer_was_lost_is_looked_at_again) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    clock.advance(std::chrono::hours{1});
    store.after_write = [lost = false](auto, std::vector<store::WriteAnswer>& answers) mutable {
        if (!std::exchange(lost, true)) answers[0] = Failure{ErrorKind::unavailable, true, "no answer"};
    };
    EXPECT_EQ(settle(other), Verdict::aborted);
    EXPECT_EQ(free_epoch(other), 1);
}

TEST_F(Settling, a_prepare_that_arrives_after_its_transaction_was_aborted_is_undone_at_sight) {
    const Claim claim = claim_of("t");
    ASSERT_EQ(resolver.resolve(claim), Verdict::aborted);
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim, {}))) << "nobody has fenced that slot";
    EXPECT_EQ(settle(other), Verdict::aborted);
    EXPECT_EQ(free_epoch(other), 1);
    EXPECT_FALSE(apply(prepare_slot(other, 0, claim, {}))) << "nor will it ever be there again";
}

TEST_F(Settling, a_primarys_own_prepare_that_arrives_after_the_fence_is_refused) {
    const Claim claim = claim_of("t");
    ASSERT_EQ(resolver.resolve(claim), Verdict::aborted);
    EXPECT_FALSE(apply(prepare_slot(primary, 0, claim, {})));
}

TEST_F(Settling, a_commit_that_arrives_after_the_fence_is_refused) {
    const Committed content{.write_id = "t", .payload = {}};
    ASSERT_EQ(resolver.resolve(claim_of("t")), Verdict::aborted);
    EXPECT_FALSE(apply(commit_free_slot(primary, 0, content)));

    ASSERT_TRUE(apply(prepare_slot(primary, 1, claim_of("u", 1), {})));
    ASSERT_EQ(resolver.resolve(claim_of("u", 1)), Verdict::aborted);
    EXPECT_FALSE(apply(commit_pending_slot(primary, {.write_id = "u", .payload = {}})));
    EXPECT_FALSE(apply(commit_free_slot(primary, 0, content)));
    EXPECT_EQ(free_epoch(primary), 2);
}

TEST_F(Settling, an_undo_voids_the_slots_own_epoch_plus_one) {
    fence_to(other, 4);
    ASSERT_TRUE(apply(prepare_slot(other, 4, claim_of("t"), {})));
    ASSERT_EQ(resolver.resolve(claim_of("t")), Verdict::aborted);
    ASSERT_EQ(settle(other), Verdict::aborted);
    EXPECT_EQ(free_epoch(other), 5);
    EXPECT_EQ(free_epoch(primary), 1);
}

TEST_F(Settling, an_undo_leaves_alone_what_another_transaction_has_prepared_meanwhile) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    const store::Item seen = item(other).value();
    ASSERT_EQ(resolver.resolve(claim_of("t")), Verdict::aborted);
    ASSERT_TRUE(apply(undo_slot(other, "t", 0)));
    ASSERT_TRUE(apply(prepare_slot(other, 1, claim_of("u", 1), {})));
    EXPECT_EQ(resolver.settle(other, seen), Verdict::aborted);
    const Slot now = slot(other);
    ASSERT_TRUE(std::holds_alternative<Pending>(now));
    EXPECT_EQ(std::get<Pending>(now).claim.tx, "u");
}

TEST_F(Settling, a_primary_taken_by_another_transaction_keeps_the_first_one_dead) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    ASSERT_TRUE(apply(prepare_slot(primary, 0, claim_of("u"), {})));
    EXPECT_EQ(resolver.look(claim_of("t")).verdict, Verdict::aborted);
    ASSERT_TRUE(apply(undo_slot(primary, "u", 0)));
    EXPECT_EQ(resolver.look(claim_of("t")).verdict, Verdict::aborted);
    EXPECT_EQ(settle(other), Verdict::aborted);
}

// ---- rows

TEST_F(Settling, an_intent_on_an_absent_row_is_undone_to_nothing) {
    ASSERT_TRUE(apply(prepare_row(row, {}, claim_of("t"), "1")));
    ASSERT_EQ(resolver.resolve(claim_of("t")), Verdict::aborted);
    ASSERT_EQ(settle(row), Verdict::aborted);
    EXPECT_EQ(item(row), std::nullopt);
}

TEST_F(Settling, an_intent_on_a_row_is_undone_to_the_very_item_that_was_there) {
    const Image image{.data = "1", .rev = "r1"};
    ASSERT_TRUE(apply(write_row(row, {}, image)));
    const auto before = item(row);
    for (const std::optional<std::string>& after : {std::optional<std::string>{"2"}, std::optional<std::string>{}}) {
        ASSERT_TRUE(apply(prepare_row(row, image, claim_of("t"), after)));
        resolver.resolve(claim_of("t"));
        ASSERT_EQ(settle(row), Verdict::aborted);
        EXPECT_EQ(item(row), before);
    }
}

TEST_F(Settling, an_intent_on_a_tombstone_hides_its_expiry_and_the_undo_puts_it_back) {
    const Image tombstone{.data = {}, .rev = "r1", .expires = 4711};
    ASSERT_TRUE(apply(write_row(row, {}, tombstone)));
    const auto before = item(row);
    ASSERT_TRUE(apply(prepare_row(row, tombstone, claim_of("t"), "2")));
    EXPECT_FALSE(item(row)->contains("_expires")) << "the store would take the intent along";
    EXPECT_EQ(decode_row(row, item(row)).image, tombstone) << "who sees it now may write upon it later";
    resolver.resolve(claim_of("t"));
    ASSERT_EQ(settle(row), Verdict::aborted);
    EXPECT_EQ(item(row), before);
}

TEST_F(Settling, a_committed_intent_becomes_the_image) {
    ASSERT_TRUE(apply(write_row(row, {}, {.data = "1", .rev = "r1"})));
    ASSERT_TRUE(apply(prepare_row(row, {.data = "1", .rev = "r1"}, claim_of("t"), "2")));
    commit_primary("t");
    EXPECT_EQ(settle(row), Verdict::committed);
    EXPECT_EQ(item(row), (store::Item{{"data", "2"}, {"_rev", "t"}}));
}

TEST_F(Settling, a_committed_deletion_becomes_a_tombstone_for_the_whole_retention) {
    ASSERT_TRUE(apply(write_row(row, {}, {.data = "1", .rev = "r1"})));
    ASSERT_TRUE(apply(prepare_row(row, {.data = "1", .rev = "r1"}, claim_of("t"), {})));
    commit_primary("t");
    clock.advance(Duration{1});
    EXPECT_EQ(settle(row), Verdict::committed);
    const std::int64_t expires =
        std::chrono::duration_cast<seconds>(start.time_since_epoch()).count() + 3600 + 1;  // rounded up
    EXPECT_EQ(item(row), (store::Item{{"_rev", "t"}, {"_expires", expires}}));
}

TEST_F(Settling, a_late_duplicate_prepare_of_a_committed_deletion_or_insertion_is_refused) {
    const store::Write insert = prepare_row(row, {}, claim_of("t"), "1");
    ASSERT_TRUE(apply(insert));
    commit_primary("t");
    ASSERT_EQ(settle(row), Verdict::committed);
    EXPECT_FALSE(apply(insert));
    const Image inserted = decode_row(row, item(row)).image;
    ASSERT_TRUE(apply(write_row(row, inserted, {.data = {}, .rev = "u", .expires = 4711})));
    EXPECT_FALSE(apply(insert)) << "the tombstone keeps it from rising again";
}

// ---- reserved slots

TEST_F(Settling, a_reserved_slot_that_got_nothing_becomes_void) {
    ASSERT_TRUE(apply(reserve_slot(other, 0, claim_of("t"))));
    commit_primary("t");
    EXPECT_EQ(settle(other), Verdict::committed);
    EXPECT_EQ(free_epoch(other), 1);
}

TEST_F(Settling, a_reserved_slot_gets_its_part_of_what_the_primary_holds) {
    const store::Key third = slot_key("c", 1);
    ASSERT_TRUE(apply(reserve_slot(other, 0, claim_of("t"))));
    ASSERT_TRUE(apply(reserve_slot(third, 0, claim_of("t"))));
    Committed content{.write_id = "t", .payload = {}, .participants = {other, third}};
    content.payload = {{copied_attribute(0, "n"), std::int64_t{1}}, {copied_attribute(1, "n"), std::int64_t{2}}};
    ASSERT_TRUE(apply(commit_free_slot(primary, 0, content)));
    ASSERT_EQ(settle(other), Verdict::committed);
    ASSERT_EQ(settle(third), Verdict::committed);
    EXPECT_EQ(std::get<Committed>(slot(other)).payload, (store::Item{{"n", std::int64_t{1}}}));
    EXPECT_EQ(std::get<Committed>(slot(third)).payload, (store::Item{{"n", std::int64_t{2}}}));
}

// ---- many at once

struct SettlingMany : Settling {
    std::shared_ptr<testing::CountingStore> counting = std::make_shared<testing::CountingStore>(inner);
    Resolver counted{*counting, {.clock = clock}, {}, metrics};
    std::vector<store::Key> keys;

    static Claim claim_at(const store::Key& primary, std::string tx, Time lease = start - std::chrono::hours{1}) {
        return {.tx = std::move(tx), .primary = primary, .primary_epoch = 0, .lease = lease, .priority = start};
    }
    /// A slot of a stream of its own that a transaction has prepared.
    void prepare(const Claim& claim) {
        keys.push_back(slot_key("s" + std::to_string(keys.size()), 1));
        ASSERT_TRUE(apply(prepare_slot(keys.back(), 0, claim, {})));
    }
    std::vector<Verdict> settle_all() {
        const std::vector<std::optional<store::Item>> items = inner->read(keys);
        std::vector<Resolver::Claimed> claimed;
        for (std::size_t i = 0; i < keys.size(); ++i) claimed.push_back({keys[i], items[i].value()});
        return counted.settle(claimed);
    }
};

TEST_F(SettlingMany, cost_one_read_of_their_primaries_one_batch_of_fences_and_one_that_clears_them) {
    for (int i = 0; i < 100; ++i) prepare(claim_at(slot_key("p" + std::to_string(i / 2), 1), std::to_string(i / 2)));
    EXPECT_EQ(settle_all(), std::vector<Verdict>(100, Verdict::aborted));
    for (const store::Key& key : keys) EXPECT_EQ(free_epoch(key), 1);
    const testing::RequestCounts counts = counting->counts();
    EXPECT_EQ(counts.round_trips(), 3u);
    EXPECT_EQ(counts.reads, 50u);
    EXPECT_EQ(counts.writes, 50u + 100u);
    EXPECT_EQ(metrics.fenced, 50u);
    EXPECT_EQ(metrics.undone_for_others, 100u);
}

TEST_F(SettlingMany, each_gets_its_own_verdict) {
    const store::Key free = slot_key("f", 1), taken = slot_key("p", 1), prepared = slot_key("q", 1);
    commit_primary("committed");
    prepare(claim_at(primary, "committed"));
    prepare(claim_at(free, "alive", start + seconds{1}));
    prepare(claim_at(taken, "fenced and over"));
    prepare(claim_at(primary, "somebody else's"));
    ASSERT_TRUE(apply(prepare_slot(prepared, 0, claim_at(prepared, "itself"), {})));
    keys.push_back(prepared);
    EXPECT_EQ(settle_all(), (std::vector{Verdict::committed, Verdict::undecided, Verdict::aborted, Verdict::aborted,
                                         Verdict::aborted}));
    EXPECT_TRUE(std::holds_alternative<Committed>(decode_slot(keys[0], item(keys[0]))));
    EXPECT_TRUE(std::holds_alternative<Pending>(decode_slot(keys[1], item(keys[1]))));
    for (const store::Key& key : {keys[2], keys[3], prepared, taken}) EXPECT_EQ(free_epoch(key), 1);
    EXPECT_EQ(item(free), std::nullopt);
    EXPECT_EQ(metrics.fenced, 2u) << "of those that were committed or ended already, nothing had to be";
}

// Both expect the same slot to be free at the same epoch: what ends the one ends the other.
TEST_F(SettlingMany, a_fence_for_one_ends_who_shares_its_primary) {
    const store::Key shared = slot_key("p", 1);
    prepare(claim_at(shared, "alive", start + seconds{1}));
    prepare(claim_at(shared, "over"));
    EXPECT_EQ(settle_all(), (std::vector{Verdict::aborted, Verdict::aborted}));
    EXPECT_EQ(free_epoch(shared), 1);
    EXPECT_EQ(metrics.fenced, 1u);
}

TEST_F(SettlingMany, only_what_was_not_answered_stays_undecided) {
    for (const char* tx : {"t", "u", "v"}) prepare(claim_at(slot_key(std::string{"p-"} + tx, 1), tx));
    const std::vector<std::optional<store::Item>> items = inner->read(keys);
    std::vector<Resolver::Claimed> claimed;
    for (std::size_t i = 0; i < keys.size(); ++i) claimed.push_back({keys[i], items[i].value()});
    store.after_write = [&](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        for (std::size_t i = 0; i < writes.size(); ++i) {
            if (writes[i].key == keys[1]) answers[i] = Failure{ErrorKind::unavailable, true, "no answer"};
        }
    };
    EXPECT_EQ(resolver.settle(claimed), (std::vector{Verdict::aborted, Verdict::undecided, Verdict::aborted}));
}

TEST_F(SettlingMany, of_nothing_ask_nothing) {
    EXPECT_EQ(settle_all(), std::vector<Verdict>{});
    EXPECT_EQ(counting->counts(), testing::RequestCounts{});
}

// ---- what cannot be read is nobody's to settle

TEST_F(Settling, a_primary_in_an_unknown_state_is_an_error_and_nothing_is_touched) {
    ASSERT_TRUE(apply(prepare_slot(other, 0, claim_of("t"), {})));
    ASSERT_TRUE(apply({primary, store::Put{{{"state", "staged"}}}}));
    const auto before = item(other);
    clock.advance(seconds{60});
    EXPECT_THROW(settle(other), CorruptionError);
    EXPECT_EQ(item(other), before);
}

TEST_F(Settling, a_list_of_participants_that_has_lost_a_part_is_an_error) {
    const Committed content{.write_id = "t", .payload = {}, .participants = {}, .continued = 2};
    ASSERT_TRUE(apply(write_part(slot_key("$tx-t", 2), {.write_id = "t", .participants = {other}})));
    EXPECT_THROW(static_cast<void>(resolver.participants(content)), CorruptionError);
    ASSERT_TRUE(apply(write_part(slot_key("$tx-t", 3), {.write_id = "t", .participants = {row}})));
    EXPECT_EQ(resolver.participants(content), (std::vector<store::Key>{other, row}));
}

// A delayed undo of the first prepare must not clear the second one, or epochs would go back.
TEST_F(Settling, an_undo_is_of_one_epoch) {
    const store::Key slot = slot_key("account-undo", 1);
    const Claim claim{.tx = "x", .primary = slot_key("account-a", 1), .primary_epoch = 0, .lease = {}, .priority = {}};
    ASSERT_TRUE(apply(prepare_slot(slot, 0, claim, {})));
    ASSERT_TRUE(apply(undo_slot(slot, "x", 0)));
    ASSERT_TRUE(apply(fence_free_slot(slot, 1)));
    ASSERT_TRUE(apply(prepare_slot(slot, 2, claim, {})));
    EXPECT_FALSE(apply(undo_slot(slot, "x", 0)));
    EXPECT_TRUE(apply(undo_slot(slot, "x", 2)));
}

}  // namespace
}  // namespace varve::transactions
