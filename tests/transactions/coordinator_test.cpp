#include "support/account.h"
#include "support/hooked_store.h"
#include "support/later.h"

#include <varve/core/error.h>
#include <varve/testing/manual_clock.h>
#include <varve/transactions/coordinator.h>
#include <varve/varve.h>

#include <functional>
#include <string>

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
    f.store.before_write = [&, sent = 0](auto) mutable {
        if (++sent != 2) return;  // meanwhile the other one has gone, and somebody has written
        const store::Write gone{f.row, store::Erase{}, {}};
        static_cast<void>(f.inner->write({&gone, 1}));
        const store::Write theirs = write_row(f.row, {}, {.data = "\"theirs\"", .rev = "theirs"});
        static_cast<void>(f.inner->write({&theirs, 1}));
    };
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

template <class E>
std::string message(const std::function<void()>& of) {
    try {
        of();
    } catch (const E& error) {
        return error.what();
    }
    return "nothing was thrown";
}

/// Limits the bytes of an atomic batch, and not only its writes.
class FullStore final : public PassingStore {
  public:
    using PassingStore::PassingStore;
    store::AtomicAnswer write_atomically(std::span<const store::Write>) override {
        return Failure{.kind = ErrorKind::invalid, .message = "the batch is too large"};
    }
};

TEST(Coordinator, what_is_too_large_for_one_request_goes_by_the_protocol) {
    Application bank{std::make_shared<FullStore>(open("memory:")), {.sweep = false}};
    const Outcome outcome = bank.transact([](Transaction& tx) {
        tx.execute<account::Account>("alice", account::Deposit{5});
        tx.execute<account::Account>("bob", account::Deposit{5});
    });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->path, Path::protocol);
    EXPECT_EQ(bank.load<account::Account>("bob").state.balance, 5);
}

TEST(Coordinator, names_the_option_that_cannot_work) {
    ClaimedRow f;
    const auto make = [&](Options options) {
        return message<ConfigError>([&] {
            Coordinator{f.store, {f.clock, Random::system(), Log::standard_error()}, f.later, options};
        });
    };
    using std::chrono::seconds;
    EXPECT_NE(make({.lease = seconds{0}}).find("lease"), std::string::npos);
    EXPECT_NE(make({.lease = seconds{-1}}).find("-1"), std::string::npos);
    EXPECT_NE(make({.answer_time_max = seconds{0}}).find("answer_time_max"), std::string::npos);
    EXPECT_NE(make({.retention = seconds{9}}).find("retention"), std::string::npos);
    EXPECT_EQ(make({.retention = seconds{10}}), "nothing was thrown");
}

TEST(Coordinator, settles_no_transaction_by_what_is_no_handle) {
    ClaimedRow f;
    Coordinator coordinator{f.store, {f.clock, Random::system(), Log::standard_error()}, f.later, {}};
    for (const char* handle :
         {"", "tx", "tx@0", "tx@0/1", "tx@0/1/", "@0/1/account-a", "tx@-1/1/account-a", "tx@0/0/account-a",
          "tx@0/-1/account-a", "tx@0x/1/account-a", "tx@/1/account-a", "tx@0/99999999999999999999/account-a"}) {
        const std::string error = message<InvalidError>([&] { static_cast<void>(coordinator.resolve(handle)); });
        EXPECT_NE(error.find("is no transaction's handle"), std::string::npos) << handle << ": " << error;
    }
    EXPECT_EQ(coordinator.resolve("tx@0/1/account-a/b@c"), Verdict::aborted);
}

}  // namespace
}  // namespace varve::transactions
