#include "transactions/coordinator.h"

#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
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
    testing::Later later;
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

TEST(Coordinator, a_row_write_that_was_refused_for_ever_is_a_conflict) {
    ClaimedRow f;
    f.plan.rows.front().key = {"rows", "another"};
    const store::Write committed = write_row(f.plan.rows.front().key, {}, {.data = "\"theirs\"", .rev = "theirs"});
    static_cast<void>(f.inner->write({&committed, 1}));
    EXPECT_NO_THROW(f.commit());
}

TEST(Reader, that_finds_no_moment_for_a_snapshot_says_which_row_kept_changing) {
    const std::shared_ptr<store::ItemStore> inner = open("memory:");
    HookedStore store{inner};
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    store.ensure_table(events_table());
    store.ensure_table(rows_table);
    const std::vector<store::Key> keys{{"rows", "calm"}, {"rows", "hot"}};
    int changes = 0;
    store.before_read = [&] {
        const store::Write write{keys[1], store::Put{{{"data", "1"}, {"_rev", std::to_string(++changes)}}}, {}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner->write({&write, 1}).front()));
    };
    testing::Later later;
    Coordinator coordinator{store, {.clock = clock}, later, {}};
    try {
        static_cast<void>(coordinator.reader().rows(keys, Isolation::snapshot));
        FAIL() << "it was of one moment";
    } catch (const ConflictError& error) {
        EXPECT_EQ(error.details().item, store::to_string(keys[1]));
        EXPECT_EQ(error.details().attempts, static_cast<unsigned>(changes - 1));
        EXPECT_NE(std::string{error.what()}.find("hot"), std::string::npos) << error.what();
    }
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
class FullStore final : public testing::PassingStore {
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
    EXPECT_NE(make({.retention = seconds{19}}).find("retention"), std::string::npos);
    EXPECT_EQ(make({.retention = seconds{20}}), "nothing was thrown");
}

TEST(Coordinator, settles_no_transaction_by_what_is_no_handle) {
    ClaimedRow f;
    Coordinator coordinator{f.store, {f.clock, Random::system(), Log::standard_error()}, f.later, {}};
    for (const char* handle :
         {"", "tx", "tx@0", "tx@0/1", "tx@0/1/", "@0/1/account-a", "tx@-1/1/account-a", "tx@0/0/account-a",
          "tx@0/-1/account-a", "tx@0x/1/account-a", "tx@/1/account-a", "tx@0/99999999999999999999/account-a"}) {
        const std::string error =
            message<InvalidError>([&] { static_cast<void>(coordinator.resolve(TransactionHandle{handle})); });
        EXPECT_NE(error.find("is no transaction's handle"), std::string::npos) << handle << ": " << error;
    }
    EXPECT_EQ(coordinator.resolve(TransactionHandle{"tx@0/1/account-a/b@c"}), Verdict::aborted);
}

}  // namespace
}  // namespace varve::transactions
