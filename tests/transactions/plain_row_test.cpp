#include "support/hooked_store.h"
#include "transactions/coordinator.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
#include <varve/varve.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

using namespace std::chrono_literals;

const store::TableSchema plain_rows{.name = "rows", .partition_attribute = "id"};

using End = std::variant<Conflict, Commit>;

bool is_commit(const End& end) {
    return std::holds_alternative<Commit>(end);
}

/// One process writes a row over a store that the test may come between; others write it directly.
struct OneRow : ::testing::Test {
    std::shared_ptr<store::ItemStore> inner = open("memory:");
    HookedStore store{inner};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::Later later;
    const Runtime runtime{clock, Random::system(), Log::standard_error()};
    Coordinator mine{store, runtime, later, {}};
    const store::Key key{"rows", "row"};
    std::vector<store::Write> sent;  // by `mine`
    int ids = 0;

    OneRow() {
        for (const auto& schema : {events_table(), plain_rows}) store.ensure_table(schema);
        store.before_write = [this](std::span<const store::Write> writes) {
            sent.insert(sent.end(), writes.begin(), writes.end());
        };
    }

    Row row() { return decode_row(key, inner->read({&key, 1}).front()); }

    End write(Coordinator& by, const std::string& tx, std::optional<std::string> data) {
        Plan plan;
        plan.rows.push_back({key, row().image, std::move(data)});
        return by.commit(plan, tx, clock.now());
    }
    End write(std::optional<std::string> data) { return write(mine, "mine", std::move(data)); }

    /// By a process that does nothing else.
    void somebody_writes(std::optional<std::string> data) {
        Coordinator other{*inner, runtime, later, {}};
        ASSERT_TRUE(is_commit(write(other, "other-" + std::to_string(++ids), std::move(data))));
    }
    /// As the second step of a transaction over more than this row.
    void a_transaction_writes(std::optional<std::string> data) {
        const Claim claim{
            .tx = "tx-" + std::to_string(++ids), .primary = slot_key("account-other", 1), .lease = {}, .priority = {}};
        put(prepare_row(key, row().image, claim, data));
        put(finalise_row(key, row().image, row().intent.value(), 4711));
    }
    void put(const store::Write& one) {
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&one, 1}).front()));
    }
    /// All that was ever sent arrives once more.
    void everything_arrives_again() {
        for (const store::Write& one : sent) static_cast<void>(inner->write({&one, 1}));
    }

    /// After the write numbered `at`, from 1, was applied: `then` happens, and its answer is `instead`.
    void answer(int at, const std::function<void()>& then, const std::function<store::WriteAnswer()>& instead) {
        store.after_write = [at, then, instead, seen = 0](auto, std::vector<store::WriteAnswer>& answers) mutable {
            if (++seen != at) return;
            then();
            answers = {instead()};
        };
    }
    static store::WriteAnswer lost() {
        return Failure{.kind = ErrorKind::in_doubt, .in_doubt = true, .message = "no answer"};
    }
    store::WriteAnswer refused() { return store::Refused{inner->read({&key, 1}).front()}; }
};

TEST_F(OneRow, a_lost_answer_is_settled_although_others_have_written_since) {
    somebody_writes("1");
    answer(
        1,
        [&] {
            somebody_writes("3");
            a_transaction_writes("4");
            somebody_writes("5");
        },
        lost);
    EXPECT_TRUE(is_commit(write("2")));
    EXPECT_EQ(row().image.data, "5");
}

TEST_F(OneRow, the_answer_of_a_second_delivery_is_recognised) {
    somebody_writes("1");
    answer(
        1, [&] { somebody_writes("3"); }, [&] { return refused(); });
    EXPECT_TRUE(is_commit(write("2")));
    EXPECT_EQ(row().image.data, "3");
}

TEST_F(OneRow, a_row_that_was_deleted_tells_who_wrote_it) {
    for (const auto& deletes : {std::function<void()>{[&] { somebody_writes({}); }},
                                std::function<void()>{[&] { a_transaction_writes({}); }}}) {
        somebody_writes("1");
        answer(1, deletes, lost);
        EXPECT_TRUE(is_commit(write(mine, "mine-" + std::to_string(++ids), "2")));
        EXPECT_EQ(row().image.data, std::nullopt);
    }
}

TEST_F(OneRow, what_was_not_applied_is_a_conflict_although_an_answer_was_lost) {
    somebody_writes("1");
    store.hold_back_writes = true;
    store.after_write = [&](auto, std::vector<store::WriteAnswer>& answers) {
        if (!store.hold_back_writes.exchange(false)) return;
        somebody_writes("3");
        answers = {lost()};
    };
    EXPECT_FALSE(is_commit(write("2")));
    everything_arrives_again();
    EXPECT_EQ(row().image.data, "3");
}

TEST_F(OneRow, an_insert_goes_upon_a_tombstone_whose_revision_is_sent_once) {
    answer(
        1, [] {}, lost);
    EXPECT_TRUE(is_commit(write("1")));
    ASSERT_EQ(sent.size(), 3U) << "a tombstone, another one that finds it, the row";
    const auto revision = [&](std::size_t i) {
        return *store::text(std::get<store::Update>(sent[i].action).set, "_rev");
    };
    EXPECT_NE(revision(0), revision(1));
    EXPECT_EQ(sent[2].condition, unclaimed_at(revision(0)));
    EXPECT_EQ(row().image.data, "1");
    EXPECT_EQ(row().image.expires, std::nullopt);
}

TEST_F(OneRow, an_insert_whose_answer_was_lost_and_that_another_deleted_is_never_brought_back) {
    answer(
        2,
        [&] {
            somebody_writes({});
            clock.advance(2 * mine.options().retention);
            put(remove_tombstone(key, row().image));
        },
        lost);
    EXPECT_THROW(static_cast<void>(write("1")), InDoubtError) << "nobody remembers for so long";
    EXPECT_FALSE(inner->read({&key, 1}).front());
    for (std::size_t i = 1; i < sent.size(); ++i) static_cast<void>(inner->write({&sent[i], 1}));
    EXPECT_FALSE(inner->read({&key, 1}).front()) << "a repeat, however late";
}

TEST_F(OneRow, an_insert_goes_upon_the_tombstone_that_came_meanwhile) {
    Plan plan;
    plan.rows.push_back({key, {}, "1"});
    somebody_writes("0");
    somebody_writes({});
    clock.advance(mine.options().retention - 1s);
    store.before_read = [] { FAIL() << "all that there is to know came with the answer"; };
    const End end = mine.commit(plan, "mine", clock.now());
    ASSERT_TRUE(is_commit(end)) << "a tombstone is as absent as nothing";
    somebody_writes({});
    clock.advance(2 * mine.options().retention);
    put(remove_tombstone(key, row().image));
    everything_arrives_again();
    EXPECT_EQ(row().image.data, std::nullopt);
}

struct RowWithIntent : OneRow {
    const Claim older{.tx = "other",
                      .primary = slot_key("account-other", 1),
                      .primary_epoch = 0,
                      .lease = clock.now() + 1h,
                      .priority = clock.now() - 1h,
                      .lease_length = 1h};
};

TEST_F(RowWithIntent, who_waits_in_vain_for_an_intent_ends_in_a_conflict_and_never_applies) {
    somebody_writes("1");
    put(prepare_row(key, row().image, older, "3"));
    EXPECT_FALSE(is_commit(write("2")));
    const Row claimed = row();
    put(undo_row(key, claimed.image, claimed.intent.value()));
    everything_arrives_again();
    EXPECT_EQ(row().image.data, "1");
    somebody_writes("4");
}

TEST_F(RowWithIntent, it_is_a_conflict_too_when_the_intents_primary_cannot_be_read) {
    somebody_writes("1");
    put(prepare_row(key, row().image, older, "3"));
    store.before_read = [] { throw UnavailableError("the store cannot be read"); };
    EXPECT_FALSE(is_commit(write("2")));
}

TEST_F(RowWithIntent, an_own_write_beneath_the_intent_of_another_is_seen_before_the_intent) {
    somebody_writes("1");
    answer(
        1, [&] { put(prepare_row(key, row().image, older, "3")); }, lost);
    store.before_read = [] { FAIL() << "the other's primary does not matter"; };
    EXPECT_TRUE(is_commit(write("2")));
    EXPECT_TRUE(row().intent);
}

TEST_F(RowWithIntent, an_intent_on_a_later_image_is_not_waited_for) {
    somebody_writes("1");
    Plan plan;
    plan.rows.push_back({key, row().image, "2"});
    somebody_writes("3");
    put(prepare_row(key, row().image, older, "4"));
    const SteadyTime before = clock.steady_now();
    EXPECT_FALSE(is_commit(mine.commit(plan, "mine", clock.now())));
    EXPECT_EQ(clock.steady_now(), before);
    EXPECT_TRUE(row().intent);
}

TEST_F(OneRow, whoever_writes_often_leaves_one_id) {
    for (int i = 0; i < 100; ++i) {
        const End end = write(mine, "mine-" + std::to_string(i), std::to_string(i));
        ASSERT_TRUE(is_commit(end));
        EXPECT_EQ(std::get<Commit>(end).path, Path::single);
    }
    EXPECT_EQ(row().image.writers.size(), 1U);
}

TEST_F(OneRow, a_row_that_remembers_as_many_as_it_may_is_written_with_a_primary) {
    for (std::size_t i = 0; i < writers_max; ++i) somebody_writes(std::to_string(i));
    EXPECT_EQ(row().image.writers.size(), writers_max);
    const End end = write("\"full\"");
    ASSERT_TRUE(is_commit(end));
    EXPECT_EQ(std::get<Commit>(end).path, Path::native);
    EXPECT_EQ(row().image.data, "\"full\"");
    EXPECT_EQ(row().image.writers.size(), writers_max);

    clock.advance(mine.options().retention + 2s);
    const End later = write(mine, "later", "\"room again\"");
    ASSERT_TRUE(is_commit(later));
    EXPECT_EQ(std::get<Commit>(later).path, Path::single);
    EXPECT_EQ(row().image.writers.size(), 1U);
}

TEST_F(OneRow, its_ids_outlive_an_intent_that_is_undone) {
    somebody_writes("1");
    const Writers before = row().image.writers;
    EXPECT_EQ(before.size(), 1U);
    put(prepare_row(key, row().image,
                    {.tx = "tx", .primary = slot_key("account-other", 1), .lease = {}, .priority = {}}, {}));
    put(undo_row(key, row().image, row().intent.value()));
    EXPECT_EQ(row().image.writers, before);
}

TEST_F(OneRow, ids_that_cannot_be_read_are_reported_with_the_rows_name) {
    const store::Write damaged{key, store::Put{{{"data", "1"}, {"_rev", "r"}, {"_writers", "[1]"}}}, {}};
    put(damaged);
    try {
        static_cast<void>(row());
        FAIL();
    } catch (const CorruptionError& error) {
        EXPECT_NE(std::string{error.what()}.find("rows/row"), std::string::npos) << error.what();
    }
}

/// Two rows that are written together, in one atomic request. What is sent may arrive again at any time.
struct TwoRows : OneRow {
    const store::Key other{"rows", "another"};
    std::vector<std::vector<store::Write>> sent_together;

    TwoRows() {
        store.after_atomic_write = [this](std::span<const store::Write> writes, store::AtomicAnswer&) {
            sent_together.emplace_back(writes.begin(), writes.end());
        };
    }

    Row read(const store::Key& one) { return decode_row(one, inner->read({&one, 1}).front()); }
    std::optional<std::string> data(const store::Key& one) { return read(one).image.data; }
    Plan plan(const std::string& text) {
        Plan plan;
        for (const store::Key& one : {key, other}) plan.rows.push_back({one, read(one).image, text});
        return plan;
    }
    End write_both(const std::string& text) { return mine.commit(plan(text), "mine-" + text, clock.now()); }
    void somebody_writes_both(const std::string& text) {
        Coordinator by{*inner, runtime, later, {}};
        ASSERT_TRUE(is_commit(by.commit(plan(text), "somebody-" + text, clock.now())));
    }
    /// The first request is applied; then `then` happens, and the answer is lost.
    void lose_an_answer(std::function<void()> then) {
        store.after_atomic_write = [this, then = std::move(then)](std::span<const store::Write> writes,
                                                                  store::AtomicAnswer& answer) {
            sent_together.emplace_back(writes.begin(), writes.end());
            if (sent_together.size() > 1) return;
            then();
            answer = Failure{.kind = ErrorKind::in_doubt, .in_doubt = true, .message = "no answer"};
        };
    }
    void everything_arrives_again() {
        for (const auto& writes : sent_together) static_cast<void>(inner->write_atomically(writes));
    }
    std::size_t slots() {
        store::Scan scan{.table = events_table().name};
        return inner->scan(scan).records.size();
    }
};

TEST_F(TwoRows, are_written_by_one_request_that_leaves_nothing_else_behind) {
    somebody_writes("0");
    const End end = write_both("1");
    ASSERT_TRUE(is_commit(end));
    EXPECT_EQ(std::get<Commit>(end).path, Path::native);
    ASSERT_EQ(sent_together.size(), 1U);
    EXPECT_EQ(sent_together[0].size(), 2U);
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(slots(), 0U);
    EXPECT_EQ(data(key), "1");
    EXPECT_EQ(data(other), "1");
    EXPECT_TRUE(is_commit(write_both("2")));
    EXPECT_EQ(read(key).image.writers.size() + read(other).image.writers.size(), 2U)
        << "one id each time, unless ended";
}

TEST_F(TwoRows, that_are_both_absent_have_no_revision_to_go_upon_and_get_a_slot_that_tells) {
    ASSERT_TRUE(is_commit(write_both("1")));
    EXPECT_EQ(slots(), 1U);
    EXPECT_EQ(data(other), "1");
}

TEST_F(TwoRows, tell_who_wrote_them_although_others_have_written_since) {
    somebody_writes("0");
    lose_an_answer([&] {
        somebody_writes_both("2");
        somebody_writes("3");
    });
    EXPECT_TRUE(is_commit(write_both("1")));
    everything_arrives_again();
    EXPECT_EQ(data(key), "3");
    EXPECT_EQ(data(other), "2");
}

TEST_F(TwoRows, of_which_one_has_moved_on_are_a_conflict_also_for_a_request_that_comes_late) {
    somebody_writes("0");
    const Plan old = plan("1");
    {
        Plan elsewhere;
        elsewhere.rows.push_back({other, {}, "2"});
        Coordinator by{*inner, runtime, later, {}};
        ASSERT_TRUE(is_commit(by.commit(elsewhere, "somebody", clock.now())));
    }
    EXPECT_FALSE(is_commit(mine.commit(old, "mine", clock.now())));
    everything_arrives_again();
    EXPECT_EQ(data(key), "0");
    EXPECT_EQ(data(other), "2");
}

TEST_F(TwoRows, whose_request_gets_lost_are_never_written_after_that_was_said) {
    somebody_writes("0");
    store.hold_back_writes = true;
    store.after_atomic_write = [this](std::span<const store::Write> writes, store::AtomicAnswer& answer) {
        sent_together.emplace_back(writes.begin(), writes.end());
        answer = Failure{.kind = ErrorKind::in_doubt, .in_doubt = true, .message = "no answer"};
    };
    store.after_write = [this](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        answers = inner->write(writes);
    };
    EXPECT_FALSE(is_commit(write_both("1"))) << "it has moved the row on that would have told";
    everything_arrives_again();
    EXPECT_EQ(data(key), "0");
    EXPECT_EQ(data(other), std::nullopt);
}

TEST_F(TwoRows, whose_writer_learns_nothing_any_more_are_in_doubt) {
    somebody_writes("0");
    lose_an_answer([&] {
        somebody_writes_both("2");
        clock.advance(2 * mine.options().retention);
        for (int i = 3; i < 5; ++i) somebody_writes(std::to_string(i));  // whose ids take the place of older ones
    });
    EXPECT_THROW(static_cast<void>(write_both("1")), InDoubtError);
}

TEST_F(TwoRows, that_are_too_much_for_one_request_go_by_the_protocol) {
    somebody_writes("0");
    store.after_atomic_write = [](auto, store::AtomicAnswer& answer) {
        answer = Failure{.kind = ErrorKind::invalid, .in_doubt = false, .message = "too large"};
    };
    store.hold_back_writes = true;
    store.after_write = [this](std::span<const store::Write> writes, std::vector<store::WriteAnswer>& answers) {
        answers = inner->write(writes);
    };
    const End end = write_both("1");
    ASSERT_TRUE(is_commit(end));
    EXPECT_EQ(std::get<Commit>(end).path, Path::protocol);
    later.drain();
    EXPECT_EQ(data(key), "1");
    EXPECT_EQ(data(other), "1");
}

TEST_F(TwoRows, are_written_only_if_what_was_read_beside_them_still_stands) {
    somebody_writes("0");
    Plan validated;
    validated.rows.push_back({other, {}, "1"});
    validated.rows.push_back({key, row().image, "1"});
    validated.heads_read.push_back({slot_key("account-alice", 1)});
    ASSERT_TRUE(is_commit(mine.commit(validated, "mine", clock.now())));
    EXPECT_EQ(slots(), 0U);
    ASSERT_EQ(sent_together.size(), 1U);
    EXPECT_EQ(sent_together[0].front().key, key) << "the row that is there tells";

    validated = plan("2");
    validated.heads_read.push_back({slot_key("account-alice", 1)});
    put(commit_free_slot(slot_key("account-alice", 1), 0, {.write_id = "somebody", .payload = {{"n", 0}}}));
    EXPECT_FALSE(is_commit(mine.commit(validated, "again", clock.now())));
    EXPECT_EQ(data(key), "1");
}

}  // namespace
}  // namespace varve::transactions
