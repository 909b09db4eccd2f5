// Rows that a projection keeps for one aggregate alone, and how they are made anew from its events.

#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/hooked_store.h"

#include <varve/events/event_store.h>
#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_world.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;

struct Noticed {
    std::int64_t cents;
};
struct KeepBalance : ProjectBalance {
    using OwnRows = Balance;
};
/// One row for each event.
struct Entry {
    static constexpr std::string_view table = "entries";
    static constexpr bool sorted = true;
    std::int64_t cents = 0;
    std::string by = {};

    bool operator==(const Entry&) const = default;
};
struct KeepEntries {
    using OwnRows = Entry;
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<Entry>().put({std::string{context.aggregate_id()}, std::to_string(1000 + context.version())},
                                  {.cents = e.cents, .by = context.metadata().correlation});
        context.effect(Noticed{e.cents});
    }
};

class Refold : public ::testing::Test, protected testing::ManualWorld {
  protected:
    Refold() {
        bank.project<Account>(KeepBalance{});
        bank.project<Account>(KeepEntries{});
    }
    /// Appends as another program does that knows nothing of rows.
    void append_from_outside(const std::string& id, std::int64_t cents) {
        const Version next = coordinator_of(bank).reader().head("account-" + id).head + 1;
        const store::Write write = transactions::commit_free_slot(
            transactions::slot_key("account-" + id, next), 0,
            {.write_id = "outside-" + std::to_string(next),
             .payload = {{"events", R"([{"type":"Deposited","data":{"cents":)" + std::to_string(cents) + "}}]"},
                         {"time", std::int64_t{1}}}});
        ASSERT_TRUE(std::holds_alternative<store::Applied>(counted->write({&write, 1}).front()));
    }

    std::shared_ptr<testing::CountingStore> counted = std::make_shared<testing::CountingStore>(memory::open());
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(counted);
    Application bank{store, options()};
};

TEST_F(Refold, makes_rows_what_the_events_say_after_another_program_has_appended) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}, {.correlation = "c1"}));
    append_from_outside("alice", 700);
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{100});
    EXPECT_EQ(bank.refold<Account>("alice"), 2U) << "the balance, and the entry that was missing";
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{800});
    EXPECT_EQ(bank.rows<Entry>().get({"alice", "1001"}), (Entry{100, "c1"}));
    EXPECT_EQ(bank.rows<Entry>().get({"alice", "1002"}), (Entry{700, ""}));
    ASSERT_TRUE(bank.execute<Account>("alice", Withdraw{300}));
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{500});
    EXPECT_EQ(bank.load<Account>("alice").version, 3) << "it adds no event";
}

TEST_F(Refold, writes_nothing_where_nothing_differs) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    counted->reset();
    EXPECT_EQ(bank.refold<Account>("alice"), 0U);
    EXPECT_EQ(bank.refold<Account>("nobody"), 0U);
    EXPECT_EQ(counted->counts().refused_writes, 0U);
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{100});
    EXPECT_EQ(bank.rows<Balance>().get("nobody"), std::nullopt);
}

TEST_F(Refold, removes_rows_that_no_event_has_made_and_leaves_those_of_others) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    ASSERT_TRUE(bank.execute<Account>("bob", Deposit{5}));
    const store::Write stray =
        transactions::write_row({"entries", "alice", "7777"}, {}, {.data = R"({"cents":9})", .rev = "stray"});
    ASSERT_TRUE(std::holds_alternative<store::Applied>(counted->write({&stray, 1}).front()));
    EXPECT_EQ(bank.refold<Account>("alice"), 1U);
    EXPECT_EQ(bank.rows<Entry>().range({.partition = "alice"}).to_vector().size(), 1U);
    EXPECT_EQ(bank.rows<Entry>().range({.partition = "bob"}).to_vector().size(), 1U);
}

TEST_F(Refold, repeats_no_effect) {
    const Outcome deposited = bank.execute<Account>("alice", Deposit{100});
    ASSERT_TRUE(deposited);
    EXPECT_EQ(bank.events().effects(deposited->effects_slot->stream, deposited->effects_slot->version).size(), 1U);
    append_from_outside("alice", 1);
    counted->start_recording();
    EXPECT_EQ(bank.refold<Account>("alice"), 2U);
    for (const std::string& line : counted->recorded()) EXPECT_EQ(line.find("effects"), std::string::npos) << line;
}

TEST_F(Refold, goes_together_with_commands_that_run_at_the_same_time) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    append_from_outside("alice", 700);
    Application other{counted, options()};
    other.project<Account>(KeepBalance{});
    other.project<Account>(KeepEntries{});
    bool disturbed = false;
    store->after_query = [&](const store::Page&) {
        if (!std::exchange(disturbed, true)) {
            ASSERT_TRUE(other.execute<Account>("alice", Deposit{1}));
        }
    };
    EXPECT_EQ(bank.refold<Account>("alice"), 2U);
    EXPECT_TRUE(disturbed);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 801);
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{801});
    EXPECT_EQ(bank.rows<Entry>().range({.partition = "alice"}).to_vector().size(), 3U);
}

TEST_F(Refold, of_an_aggregate_whose_rows_have_many_writers_is_refused) {
    Application other{counted, options()};
    other.project<Account>(ProjectBalance{});
    try {
        other.refold<Account>("alice");
        FAIL() << "it cannot be right";
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("OwnRows"), std::string::npos) << error.what();
        EXPECT_NE(std::string{error.what()}.find("Account"), std::string::npos) << error.what();
    }
}

template <class Act>
std::string invalid(Act act) {
    try {
        act();
    } catch (const InvalidError& error) {
        return error.what();
    }
    return "no error";
}

TEST_F(Refold, rows_that_a_projection_keeps_are_written_by_nobody_else) {
    const std::string said =
        invalid([&] { (void)bank.transact([](Transaction& tx) { tx.rows<Balance>().put("alice", {5}); }); });
    EXPECT_NE(said.find("balances/alice"), std::string::npos) << said;
    EXPECT_NE(said.find("KeepBalance"), std::string::npos) << said;
    EXPECT_EQ(bank.rows<Balance>().get("alice"), std::nullopt);
}

struct Total {
    static constexpr std::string_view table = "totals";
    std::int64_t cents = 0;
};
struct KeepTotalOfAll {
    using OwnRows = Total;
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<Total>().update("all", [&](Total& row) { row.cents += e.cents; });
    }
};
TEST(Keepers, write_no_row_of_another_aggregate) {
    Application bank{memory::open()};
    bank.project<Account>(KeepTotalOfAll{});
    const std::string said = invalid([&] { (void)bank.execute<Account>("alice", Deposit{1}); });
    EXPECT_NE(said.find("totals/all"), std::string::npos) << said;
    EXPECT_NE(said.find("'alice'"), std::string::npos) << said;
}

struct KeepBalanceToo : ProjectBalance {
    using OwnRows = Balance;
};
TEST(Keepers, of_the_same_rows_are_refused) {
    Application bank{memory::open()};
    bank.project<Account>(KeepBalance{});
    EXPECT_THROW(bank.project<Account>(KeepBalanceToo{}), ConfigError);
}

}  // namespace
}  // namespace varve
