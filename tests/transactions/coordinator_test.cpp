#include "support/hooked_store.h"
#include "support/later.h"

#include <varve/core/error.h>
#include <varve/testing/manual_clock.h>
#include <varve/transactions/coordinator.h>
#include <varve/varve.h>

#include <gtest/gtest.h>

namespace varve::transactions {
namespace {

const store::TableSchema rows_table{.name = "rows", .partition_attribute = "id"};

/// A row on which somebody older, who is still alive, has laid an intent.
struct ClaimedRow {
    std::shared_ptr<store::ItemStore> inner = open("memory:");
    HookedStore store{inner};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    Later later;
    store::Key row{"rows", "row"};
    Plan plan;

    ClaimedRow() {
        for (const auto& schema : {events_table(), rows_table}) store.ensure_table(schema);
        const Claim other{.tx = "other",
                          .primary = slot_key("account-other", 1),
                          .primary_epoch = 0,
                          .lease = clock.now() + std::chrono::hours{1},
                          .priority = clock.now() - std::chrono::hours{1}};
        const store::Write intent = prepare_row(row, {}, other, "\"other\"");
        static_cast<void>(inner->write({&intent, 1}));
        plan.rows.push_back({row, {}, "\"mine\""});
    }

    void commit() {
        Coordinator coordinator{store, {clock, Random::system(), Log::standard_error()}, later, {}};
        static_cast<void>(coordinator.commit(plan, "mine", clock.now()));
    }
};

// The refused request may arrive once more when the intent is gone.
TEST(Coordinator, a_row_write_that_was_refused_by_what_may_pass_ends_in_doubt) {
    ClaimedRow f;
    EXPECT_THROW(f.commit(), InDoubtError);
}

TEST(Coordinator, what_was_refused_is_in_doubt_when_the_reason_cannot_be_read) {
    ClaimedRow f;
    f.store.before_read = [] { throw UnavailableError("the store cannot be read"); };
    EXPECT_THROW(f.commit(), InDoubtError);
}

TEST(Coordinator, a_row_write_that_was_refused_for_ever_is_a_conflict) {
    ClaimedRow f;
    f.plan.rows.front().key = {"rows", "another"};
    const store::Write committed = write_row(f.plan.rows.front().key, {}, {.data = "\"theirs\"", .rev = "theirs"});
    static_cast<void>(f.inner->write({&committed, 1}));
    EXPECT_NO_THROW(f.commit());
}

}  // namespace
}  // namespace varve::transactions
