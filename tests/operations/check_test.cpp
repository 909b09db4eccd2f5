#include "commands/build.h"
#include "commands/stream_row.h"
#include "operations/checked.h"
#include "rows/stored_rows.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/stream_list.h>
#include <varve/locks/locks.h>
#include <varve/testing/passing_store.h>

namespace varve::operations {
namespace {

using transactions::Strategy;

/// A store with something of everything, where nothing happens by itself.
struct Check : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, options({.transactions = {.strategy = Strategy::protocol}})};
    Tampering by_hand{store};

    Check() {
        bank.project<Account, ProjectBalance>();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(bank.execute<Account>("alice", Deposit{100}));
        EXPECT_TRUE(bank.execute<Account>("bob", Deposit{5}, {.command_id = "once"}));
        EXPECT_TRUE(transfer(20));
        EXPECT_TRUE(bank.transact([](Transaction& tx) {
            tx.rows<Client>().put("c1", {"ada@b.c", "Oslo", 2019, "v1", 0.5, Time{5s}});
            tx.rows<Client>().put("c2", {"bea@b.c", "Oslo", -7, {}, -0.25, Time{6s}});
            tx.rows<Client>().put("c3", {"cor@b.c", "Bergen", 2020, "v3", 3, Time{7s}});
        }));
        later.drain();
    }

    Outcome transfer(std::int64_t cents) {
        return bank.transact([&](Transaction& tx) {
            tx.execute<Account>("alice", Withdraw{cents});
            tx.execute<Account>("bob", Deposit{cents});
        });
    }
    CheckReport look() { return check(bank); }
    void expect(const Found& found) {
        const CheckReport report = look();
        EXPECT_EQ(rules_and_items(report), found) << described(report);
        EXPECT_FALSE(report.holds());
    }
    /// Rows of the framework's own, as it writes them.
    template <class Row>
    void put(const RowKey& key, const Row& row) {
        ASSERT_TRUE(bank.transact([&](Transaction& tx) { tx.rows<Row>().put(key, row); }));
        later.drain();
    }
    std::string write_id(const store::Key& key) { return *store::text(*by_hand.item(key), "write_id"); }
};

TEST_F(Check, finds_nothing_in_a_store_that_is_whole_and_says_how_much_it_has_seen) {
    const CheckReport report = look();
    expect_clean(report);
    EXPECT_EQ(report.streams, 2u);
    EXPECT_EQ(report.events, 6u);
    EXPECT_GT(report.slots, report.events);
    EXPECT_EQ(report.rows, 5u);
    EXPECT_EQ(report.index_entries, 17u);
    EXPECT_EQ(report.folded_rows, 2u);
    EXPECT_EQ(report.undecided + report.to_be_settled + report.not_in_order, 0u);
}

TEST_F(Check, finds_nothing_in_an_empty_store) {
    Application empty{open("memory:"), options()};
    expect_clean(check(empty));
}

// Streams

TEST_F(Check, finds_a_slot_that_is_gone) {
    by_hand.erase(slot("account-alice", 2));
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"hole events/account-alice/2"});
}

TEST_F(Check, finds_a_slot_that_was_emptied) {
    by_hand.put(slot("account-alice", 2), {{"state", "void"}, {"epoch", std::int64_t{1}}});
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"hole events/account-alice/2"});
}

TEST_F(Check, finds_slots_in_a_form_that_is_not_known) {
    const store::Key key = slot("account-alice", 2);
    const store::Item whole = *by_hand.item(key);
    const std::vector<store::Item> changes{{{"state", "odd"}},
                                           {{"state", std::int64_t{1}}},
                                           {{"write_id", ""}},
                                           {{"epoch", "1"}},
                                           {{"done", std::int64_t{2}}},
                                           {{"participants", "[{}]"}},
                                           {{"events", "[{"}},
                                           {{"events", R"([{"type":"","data":{}}])"}},
                                           {{"events", std::int64_t{1}}},
                                           {{"effects", "no"}},
                                           {{"time", "now"}},
                                           {{"headers", "[]"}}};
    for (const store::Item& change : changes) {
        by_hand.change(key, change);
        EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"unreadable events/account-alice/2"})
            << change.begin()->first;
        by_hand.put(key, whole);
    }
    by_hand.change(key, {}, {"time"});
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"unreadable events/account-alice/2"});
    by_hand.put(key, whole);
    expect_clean(look());
    by_hand.put(slot("account-alice", 0), committed_slot("w"));
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"unreadable events/account-alice/0"});
}

TEST_F(Check, finds_events_that_the_programs_aggregate_cannot_read) {
    by_hand.change(slot("account-alice", 2), {{"events", R"([{"type":"Robbed","data":{}}])"}});
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"unreadable events/account-alice/2"});
    Application stranger{store, options()};
    expect_clean(check(stranger));
}

// Transactions

TEST_F(Check, finds_slots_that_a_commit_has_lost) {
    const store::Key key = slot("account-bob", 2);
    const store::Item whole = *by_hand.item(key);
    const auto expect_lost = [&] {
        EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})),
                  Found{"lost-participant events/account-bob/2"});
    };
    by_hand.erase(key);
    expect_lost();
    by_hand.put(key, {{"state", "void"}, {"epoch", std::int64_t{1}}});
    expect_lost();
    by_hand.put(key, committed_slot("somebody"));
    expect_lost();
    by_hand.put(key, pending_slot("somebody", slot("$tx-somebody", 1)));
    expect_lost();
    by_hand.put(key, whole);
    expect_clean(look());
}

TEST_F(Check, finds_a_row_that_a_commit_has_lost) {
    by_hand.erase({"balances", "bob"});
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), (Found{"lost-participant balances/bob"}));
    clock.advance(1h);  // later its tombstone may have gone as well
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{});
}

TEST_F(Check, finds_what_is_in_a_table_that_there_is_not) {
    store::Item item = committed_slot("t");
    item.emplace("participants", R"([{"table":"nowhere","partition":"a"}])");
    by_hand.put(slot("account-carol", 1), item);
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"lost-participant nowhere/a"});
}

TEST_F(Check, finds_a_list_of_participants_that_has_lost_a_part) {
    by_hand.put(slot("$tx-long", 1), {{"state", "committed"}, {"write_id", "long"}, {"continued", std::int64_t{2}}});
    by_hand.put(slot("$tx-long", 2),
                {{"state", "part"},
                 {"write_id", "long"},
                 {"participants", R"([{"table":"events","partition":"account-dan","version":1}])"}});
    expect({"lost-participant events/$tx-long/3"});
    by_hand.put(
        slot("$tx-long", 3),
        {{"state", "part"}, {"write_id", "long"}, {"participants", R"([{"table":"balances","partition":"dan"}])"}});
    // No time is in its id, so that nobody knows of the row; and the slot may have been reserved in vain.
    expect_clean(look());
}

TEST_F(Check, finds_what_is_marked_as_done_and_still_claimed) {
    store::Item primary = committed_slot("t");
    primary.emplace("participants", R"([{"table":"events","partition":"account-dan","version":1}])");
    by_hand.put(slot("account-carol", 1), primary);
    by_hand.put(slot("account-dan", 1), pending_slot("t", slot("account-carol", 1)));
    const CheckReport on_its_way = check(bank, {.fold_projections = false});
    EXPECT_EQ(rules_and_items(on_its_way), Found{});
    EXPECT_EQ(on_its_way.to_be_settled, 1u);
    by_hand.change(slot("account-carol", 1), {{"done", std::int64_t{1}}});
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})),
              Found{"lost-participant events/account-dan/1"});
}

// Claims

TEST_F(Check, counts_claims_that_somebody_will_settle) {
    by_hand.put(slot("account-bob", 3), pending_slot("t", slot("$tx-t", 1)));
    CheckReport report = look();
    expect_clean(report);
    EXPECT_EQ(report.undecided, 1u);
    by_hand.put(slot("$tx-t", 1), {{"state", "void"}, {"epoch", std::int64_t{1}}});
    report = look();
    expect_clean(report);
    EXPECT_EQ(report.undecided, 0u);
    EXPECT_EQ(report.to_be_settled, 1u);
    EXPECT_TRUE(bank.settle(30s));
    EXPECT_EQ(look().to_be_settled, 0u);
}

TEST_F(Check, finds_a_claim_that_its_transaction_has_never_made) {
    const store::Key key = slot("account-bob", 3);
    by_hand.put(key, pending_slot("t", slot("$tx-other", 1)));
    expect({"orphan-intent events/account-bob/3"});
    by_hand.put(key, pending_slot("t", slot("account-bob", 3), 4));
    expect({"orphan-intent events/account-bob/3"});
    by_hand.put(key, pending_slot("t", slot("account-alice", 9)));
    expect({"orphan-intent events/account-bob/3"});
    by_hand.put(key, pending_slot("t", slot(std::string(2000, 'x'), 1)));
    expect({"orphan-intent events/account-bob/3"});
    by_hand.put(key, pending_slot(write_id(slot("account-alice", 4)), slot("account-alice", 4)));
    expect({"orphan-intent events/account-bob/3"});
    by_hand.erase(key);
    expect_clean(look());
}

TEST_F(Check, finds_an_intent_over_data_that_was_altered) {
    store::Item intent = claimed_by("t", slot("$tx-t", 1));
    intent.merge(store::Item{{"_was_data", std::int64_t{1}}, {"_after", R"({"cents":5})"}});
    by_hand.change({"balances", "bob"}, intent);
    EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"orphan-intent balances/bob"});
}

// Rows and indexes

TEST_F(Check, finds_rows_that_cannot_be_read) {
    const store::Key key{"balances", "bob"};
    const store::Item whole = *by_hand.item(key);
    const std::vector<std::pair<store::Item, std::vector<std::string>>> changes{{{}, {"_rev"}},
                                                                                {{{"_rev", std::int64_t{1}}}, {}},
                                                                                {{{"_rev", ""}}, {}},
                                                                                {{{"data", "{"}}, {}},
                                                                                {{{"data", R"({"cents":"much"})"}}, {}},
                                                                                {{{"data", std::int64_t{1}}}, {}},
                                                                                {{{"_writers", "no"}}, {}},
                                                                                {{{"_after", "{}"}}, {}},
                                                                                {{{"_tx", "t"}}, {}}};
    for (const auto& [set, remove] : changes) {
        by_hand.change(key, set, remove);
        EXPECT_EQ(rules_and_items(check(bank, {.fold_projections = false})), Found{"unreadable balances/bob"});
        by_hand.put(key, whole);
    }
}

TEST_F(Check, finds_rows_without_their_entries) {
    clock.advance(1h);  // the transaction that made them does not miss them any more
    for (const auto& [field, sort] : std::vector<std::pair<std::string, std::string>>{{"email", "bea@b.c\x01"},
                                                                                      {"city",
                                                                                       "Oslo\x01"
                                                                                       "c2"},
                                                                                      {"since",
                                                                                       "-09223372036854775801\x01"
                                                                                       "c2"}}) {
        const store::Key entry{"indexes", "customers/" + field, sort};
        const std::optional<store::Item> whole = by_hand.item(entry);
        ASSERT_TRUE(whole) << field;
        by_hand.erase(entry);
        expect({"index " + store::to_string(entry)});
        by_hand.put(entry, *whole);
    }
}

TEST_F(Check, finds_entries_that_are_none_of_their_rows) {
    by_hand.erase({"customers", "c3"});
    clock.advance(1h);
    const CheckReport report = look();
    EXPECT_EQ(report.findings.size(), 6u) << described(report);
    for (const Finding& one : report.findings) EXPECT_EQ(one.rule, "index");
}

TEST_F(Check, finds_a_row_whose_value_is_not_that_of_its_entry) {
    const store::Key key{"customers", "c1"};
    std::string data = *store::text(*by_hand.item(key), "data");
    data.replace(data.find("Oslo"), 4, "Rome");
    by_hand.change(key, {{"data", data}});
    expect(
        {"index indexes/customers/city/Oslo\x01"
         "c1",
         "index indexes/customers/city/Rome\x01"
         "c1"});
}

TEST_F(Check, finds_two_rows_with_one_value_of_a_unique) {
    const store::Key key{"customers", "c1"};
    std::string data = *store::text(*by_hand.item(key), "data");
    data.replace(data.find("ada@"), 4, "bea@");
    by_hand.change(key, {{"data", data}});
    const CheckReport report = look();
    EXPECT_EQ(rules_and_items(report),
              (Found{"index indexes/customers/email/ada@b.c\x01", "index indexes/customers/email/bea@b.c\x01"}));
    EXPECT_NE(described(report).find("customers/c2, which is there as well"), std::string::npos) << described(report);
}

TEST_F(Check, finds_an_entry_of_an_index_that_there_is_not) {
    const store::Key of_email{"indexes", "customers/email", "ada@b.c\x01"};
    by_hand.put({"indexes", "customers/shoe", "41\x01"}, *by_hand.item(of_email));
    expect({"index indexes/customers/shoe/41\x01"});
}

TEST_F(Check, knows_what_is_in_an_index_without_the_program_that_has_made_it) {
    Application other{store, options()};
    expect_clean(check(other));
    by_hand.erase({"customers", "c3"});
    clock.advance(1h);
    EXPECT_EQ(check(other).findings.size(), 6u);
}

TEST_F(Check, knows_the_value_of_a_field_that_a_row_does_not_have_by_its_type) {
    const store::Key key{"customers", "c2"};
    std::string data = *store::text(*by_hand.item(key), "data");
    const std::string member = "\"since\":-7,";
    ASSERT_NE(data.find(member), std::string::npos) << data;
    data.erase(data.find(member), member.size());
    by_hand.change(key, {{"data", data}});
    EXPECT_EQ(look().findings.size(), 2u) << "the entry of -7, and the one of 0 that is missing";
    Application stranger{store, options()};
    expect_clean(check(stranger));
}

// What a command id stands for

TEST_F(Check, finds_a_receipt_that_names_what_its_command_has_not_written) {
    const store::Key key = slot("$cmd-once", 1);
    for (const char* receipt :
         {R"([{"stream":"account-bob","version":2}])", R"([{"stream":"account-bob","version":7}])",
          R"([{"stream":"account-zoe","version":1}])", R"([{"stream":"account-bob","version":0}])"}) {
        by_hand.change(key, {{"receipt", receipt}});
        expect({"receipt events/$cmd-once/1"});
    }
    by_hand.change(key, {{"receipt", "[{"}});
    expect({"unreadable events/$cmd-once/1"});
    by_hand.change(key, {}, {"receipt"});
    expect({"unreadable events/$cmd-once/1"});
}

// What the framework keeps about itself

TEST_F(Check, finds_settings_that_cannot_be) {
    const store::Key format{"varve", "format"};
    by_hand.put(format, {{"varve_format", std::int64_t{2}}});
    expect({"format varve/format"});
    by_hand.erase(format);
    expect({"format varve/format"});
    by_hand.put(format, {{"varve_format", std::int64_t{1}}});
    by_hand.put({"varve", "wishes"}, {{"many", std::int64_t{1}}});
    expect({"unreadable varve/wishes"});
    by_hand.erase({"varve", "wishes"});
    by_hand.put({"varve", "sweeper/events"}, {{"position", std::int64_t{1'000'000}}});
    expect({"setting varve/sweeper/events"});
    by_hand.put({"varve", "sweeper/events"}, {{"position", "far"}});
    expect({"unreadable varve/sweeper/events"});
    by_hand.erase({"varve", "sweeper/events"});
    by_hand.put({"varve", "feed"}, {{"announced", std::int64_t{7}}});
    expect({"unreadable varve/feed"});
    by_hand.erase({"varve", "feed"});
    expect_clean(look());
}

TEST_F(Check, finds_a_table_of_rows_of_which_the_store_does_not_know_any_more) {
    put<Sums>("a", {1});
    by_hand.erase({"varve", "rows sums"});
    expect({"setting varve/rows sums"});
    by_hand.put({"varve", "rows sums"}, {{"sorted", std::int64_t{0}}});
    expect({"unreadable varve/rows sums"});
}

// Locks

TEST_F(Check, finds_locks_that_are_broken) {
    {
        const auto lock = bank.locks().acquire("door", {.wait = 1s});
        EXPECT_EQ(look().locks, 1u);
        expect_clean(look());
    }
    const store::Key counter{"varve_locks", "door", "counter"};
    const store::Item drawn = *by_hand.item(counter);
    by_hand.put({"varve_locks", "door", "queue/00000000000000000009"},
                {{"owner", "o"}, {"expires_at", std::int64_t{1}}, {"_expires", std::int64_t{1}}});
    expect({"lock varve_locks/door/queue/00000000000000000009"});
    by_hand.erase({"varve_locks", "door", "queue/00000000000000000009"});
    by_hand.put({"varve_locks", "door", "queue/00000000000000000001"}, {{"owner", std::int64_t{1}}});
    expect({"unreadable varve_locks/door/queue/00000000000000000001"});
    by_hand.erase({"varve_locks", "door", "queue/00000000000000000001"});
    by_hand.put({"varve_locks", "door", "key"}, {{"owner", "o"}});
    expect({"unreadable varve_locks/door/key"});
    by_hand.erase({"varve_locks", "door", "key"});
    by_hand.put(counter, {{"drawn", std::int64_t{-1}}});
    expect({"unreadable varve_locks/door/counter"});
    by_hand.put(counter, drawn);
    by_hand.change({"varve_locks", "door", "holder"}, {{"data", "{}"}});
    expect({"unreadable varve_locks/door/holder"});
}

// Snapshots

TEST_F(Check, finds_snapshots_that_are_not_what_the_events_say) {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(bank.execute<Counter>("c", Deposit{1}));
    later.drain();
    const CheckReport report = look();
    expect_clean(report);
    ASSERT_EQ(report.snapshots, 1u);
    const store::Key key = by_hand.keys("snapshots").front();
    const std::string item = store::to_string(key);
    const store::Item whole = *by_hand.item(key);
    Application stranger{store, options()};
    by_hand.change(key, {{"state", R"({"cents":77})"}});
    expect({"snapshot " + item});
    EXPECT_EQ(rules_and_items(check(stranger)), Found{}) << "it does not know what that should be";
    by_hand.put(key, whole);
    by_hand.change(key, {{"version", std::int64_t{9}}});
    expect({"snapshot " + item});
    EXPECT_EQ(rules_and_items(check(stranger)), Found{"snapshot " + item});
    by_hand.change(key, {{"version", "9"}});
    expect({"unreadable " + item});
    by_hand.put(key, whole);
    by_hand.change(key, {{"state", "{"}});
    expect({"unreadable " + item});
}

// Those who follow

TEST_F(Check, finds_rows_that_are_not_what_the_events_say) {
    by_hand.change({"balances", "bob"}, {{"data", R"({"cents":999})"}});
    expect({"projection balances/bob"});
}

TEST_F(Check, finds_a_checkpoint_beyond_the_end_of_the_events) {
    put<detail::Checkpoint>("reader", checkpoint_at(4));
    expect_clean(look());
    put<detail::Checkpoint>("reader", checkpoint_at(4'000'000));
    expect({"checkpoint followers/reader"});
    put<detail::Checkpoint>("reader", checkpoint_at(-1));
    expect({"unreadable followers/reader"});
}

TEST_F(Check, finds_streams_that_are_set_aside_by_nobody) {
    put<detail::Checkpoint>("reader", checkpoint_at(4, 1));
    expect({"parked followers/reader"});
    put<detail::ParkedRow>({"reader", "account-bob"}, set_aside());
    expect_clean(look());
    put<detail::ParkedRow>({"reader", "account-alice"}, set_aside());
    expect({"parked followers/reader"});
    put<detail::Checkpoint>("reader", checkpoint_at(4, 2));
    put<detail::ParkedRow>({"writer", "account-alice"}, set_aside());
    expect({"parked followers.parked/writer/account-alice"});
}

TEST_F(Check, finds_timers_that_nobody_looks_for) {
    const std::string unique = "2026-01-31T12:00:30.000000Z/1";
    const RowKey key{"$process-p/2026-01-31T12:00", unique};
    put<detail::TimerRow>(key, timer_due("2026-01-31T12:00:30Z"));
    const std::string item = "timers/$process-p/2026-01-31T12:00/" + unique;
    expect({"timer " + item});
    put<detail::TimerBucket>({"$process-p", "2026-01-31T12:00"}, {.first = parse_time("2026-01-31T12:00:00Z")});
    expect_clean(look());
    put<detail::TimerRow>(key, timer_due("2026-01-31T12:00:31Z"));
    expect({"timer " + item});
    bank.transact([&](Transaction& tx) { tx.rows<detail::TimerRow>().erase(key); }).value();
    put<detail::TimerBucket>({"$process-p", "2026-01-31T12:00"}, {.first = parse_time("2026-01-31T12:01:00Z")});
    expect({"timer timers.buckets/$process-p/2026-01-31T12:00"});
}

TEST_F(Check, finds_builds_that_cannot_be_and_rows_of_none) {
    put<detail::Builds>("sums", {.live = {.number = 2, .tables = {{"sums", false}}}, .last = 2});
    ASSERT_TRUE(bank.transact([](Transaction& tx) { tx.rows<Sums>().put("a", {1}); }));
    store->ensure_table(detail::schema_of_rows("sums.build-2", false));
    by_hand.put({"varve", "rows sums.build-2"}, {{"sorted", std::int64_t{0}}, {"indexes", "{}"}});
    by_hand.put({"sums.build-2", "a"}, {{"data", "{}"}, {"_rev", "r"}});
    expect_clean(look());
    put<detail::Builds>("sums", {.live = {.number = 3, .tables = {{"sums", false}}}, .last = 3});
    expect({"build sums.build-2/a"});
    put<detail::Builds>("sums", {.live = {.number = 3, .tables = {{"sums", false}}},
                                 .last = 3,
                                 .replaced = {{.build = {.number = 2, .tables = {{"sums", false}}}}}});
    expect_clean(look());
    put<detail::Builds>("sums", {.live = {.number = 3}, .last = 2});
    expect({"build followers.builds/sums", "build sums.build-2/a"});
}

TEST_F(Check, finds_streams_in_the_list_that_there_are_not) {
    ASSERT_EQ(bank.streams("").streams.size(), 2u);
    later.drain();
    expect_clean(look());
    put<detail::StreamRow>({"account-", "account-zoe"}, {});
    expect({"streams streams/account-/account-zoe"});
    bank.transact([&](Transaction& tx) { tx.rows<detail::StreamRow>().erase({"account-", "account-zoe"}); }).value();
    put<detail::StreamRow>({"$", "cart-"}, {});
    expect({"streams streams/$/cart-"});
    bank.transact([&](Transaction& tx) {
            tx.rows<detail::StreamRow>().erase({"$", "cart-"});
            tx.rows<detail::StreamRow>().erase({"$", "account-"});
        })
        .value();
    expect({"streams streams/account-/account-alice", "streams streams/account-/account-bob"});
}

// How it goes

TEST_F(Check, ends_when_it_is_stopped_or_has_found_enough_and_says_so) {
    by_hand.erase(slot("account-alice", 2));
    by_hand.put({"varve", "wishes"}, {{"many", std::int64_t{1}}});
    CheckReport report = check(bank, {.findings_max = 1});
    EXPECT_EQ(report.findings.size(), 1u);
    EXPECT_FALSE(report.is_complete);
    std::stop_source stop;
    std::size_t calls = 0;
    report = check(bank, {.on_progress =
                              [&](const CheckProgress& progress) {
                                  ++calls;
                                  EXPECT_FALSE(progress.looks_at.empty());
                                  stop.request_stop();
                              },
                          .stop = stop.get_token()});
    EXPECT_EQ(calls, 1u);
    EXPECT_FALSE(report.is_complete);
    EXPECT_FALSE(report.holds());
}

TEST(CheckOfSpoiltStore, an_item_that_the_store_itself_cannot_read_is_a_finding) {
    /// As if somebody had spoilt a stored item: no page that has it can be read.
    struct Spoilt final : testing::PassingStore {
        using PassingStore::PassingStore;
        store::Page scan(const store::Scan& scan) override {
            if (scan.table == "events" && is_spoilt) throw CorruptionError("events/account-alice/1 is damaged");
            return inner().scan(scan);
        }
        bool is_spoilt = false;
    };
    const auto store = std::make_shared<Spoilt>(open("memory:"));
    ApplicationOptions options;
    options.sweep = false;
    Application bank{store, options};
    bank.execute<Account>("alice", Deposit{1}).value();
    store->is_spoilt = true;
    const CheckReport report = check(bank);
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(report.findings[0].rule, "unreadable");
    EXPECT_EQ(report.findings[0].what, "events/account-alice/1 is damaged");
    EXPECT_FALSE(report.is_complete);
    EXPECT_EQ(report.not_checked.size(), 1u);
}

}  // namespace
}  // namespace varve::operations
