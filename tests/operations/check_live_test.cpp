#include "feed/log.h"
#include "feed/sequencer.h"
#include "operations/checked.h"
#include "support/dying_store.h"
#include "support/temporary_folder.h"
#include "support/unordered_store.h"
#include "transactions/bell.h"

#include <varve/testing/passing_store.h>

#include <atomic>
#include <random>
#include <thread>

namespace varve::operations {
namespace {

using transactions::Strategy;

/// Those where nothing but conditional writes of one item can be done.
std::shared_ptr<store::ItemStore> unordered() {
    return std::make_shared<UnorderedStore>(open("memory:"));
}

// Where the store keeps no order of changes

struct CheckOfLog : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = unordered();
    Application bank{store, options()};
    Tampering by_hand{store};

    CheckOfLog() {
        for (const char* id : {"alice", "bob", "alice"}) {
            EXPECT_TRUE(bank.execute<Account>(id, Deposit{100}));
            put_in_order();
        }
    }
    void put_in_order() {
        later.drain();
        feed::Sequencer sequencer{coordinator_of(bank)};
        while (sequencer.round()) {
        }
    }
    void expect(const Found& found) {
        const CheckReport report = check(bank);
        EXPECT_EQ(rules_and_items(report), found) << described(report);
    }
    static store::Key piece(std::int64_t first) { return {"feed_log", "0", first}; }
};

TEST_F(CheckOfLog, finds_nothing_where_all_is_in_order_or_on_its_way) {
    CheckReport report = check(bank);
    expect_clean(report);
    EXPECT_EQ(report.logged, 3u);
    EXPECT_EQ(report.bells, 0u);
    EXPECT_TRUE(bank.execute<Account>("carol", Deposit{1}));
    report = check(bank);
    expect_clean(report);
    EXPECT_EQ(report.logged, 3u);
    EXPECT_EQ(report.bells, 1u);
    EXPECT_EQ(report.not_in_order, 1u);
}

TEST_F(CheckOfLog, finds_a_gap) {
    by_hand.erase(piece(2));
    expect({"log feed_log/0/3", "log feed_marks/account-bob"});
}

TEST_F(CheckOfLog, finds_slots_in_it_that_there_are_not) {
    by_hand.put(piece(4), {{"slots", R"([{"stream":"account-alice","first":3,"last":3}])"}});
    expect({"log events/account-alice/3"});
}

TEST_F(CheckOfLog, finds_slots_that_are_in_it_twice_or_were_passed_by) {
    by_hand.put(piece(4), {{"slots", R"([{"stream":"account-bob","first":1,"last":1}])"}});
    expect({"log feed_log/0/4"});
    by_hand.erase(piece(4));
    by_hand.put(piece(2), {{"slots", R"([{"stream":"account-alice","first":2,"last":2}])"}});
    expect({"log feed_log/0/3", "log feed_marks/account-bob"});
}

TEST_F(CheckOfLog, finds_pieces_that_cannot_be_read_and_looks_no_further) {
    by_hand.put(piece(2), {{"slots", "[]"}});
    const CheckReport report = check(bank);
    EXPECT_EQ(rules_and_items(report), Found{"unreadable feed_log/0/2"}) << described(report);
    EXPECT_EQ(report.not_checked.size(), 1u);
}

TEST_F(CheckOfLog, finds_watermarks_that_are_not_those_of_the_log) {
    const store::Key alice{"feed_marks", "account-alice"};
    by_hand.put(alice, {{"version", std::int64_t{3}}});
    expect({"log feed_marks/account-alice"});
    by_hand.put(alice, {{"version", std::int64_t{1}}});
    expect({});  // the last piece may not be in the watermarks yet
    by_hand.erase(alice);
    expect({"log feed_marks/account-alice"});
    by_hand.put(alice, {{"version", "2"}});
    expect({"unreadable feed_marks/account-alice"});
}

TEST_F(CheckOfLog, finds_bells_that_cannot_be_read_or_that_nobody_hears) {
    const store::Key bell{"feed_bells", "0", "t@0"};
    by_hand.put(bell, {{"stream", "account-alice"}, {"version", std::int64_t{3}}, {"epoch", std::int64_t{0}}});
    expect({});
    by_hand.put({"feed_bells", "7", "t@0"}, *by_hand.item(bell));
    expect({"log feed_bells/7/t@0"});
    by_hand.erase({"feed_bells", "7", "t@0"});
    by_hand.change(bell, {{"epoch", std::int64_t{-1}}});
    expect({"unreadable feed_bells/0/t@0"});
}

TEST_F(CheckOfLog, finds_a_checkpoint_beyond_its_end) {
    bank.transact([](Transaction& tx) { tx.rows<detail::Checkpoint>().put("reader", checkpoint_at(4)); }).value();
    expect({"checkpoint followers/reader"});
}

// Projections that run

struct CheckOfFollowers : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Tampering by_hand{store};
    Application bank{store};

    CheckOfFollowers() {
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(bank.execute<Account>("bob", Deposit{100}));
        bank.follow<Account>(SumUp{});
        EXPECT_TRUE(bank.wait_for<SumUp>({}, 60s));
    }
};

TEST_F(CheckOfFollowers, finds_rows_that_are_not_what_the_events_say) {
    expect_clean(check(bank));
    by_hand.change({"sums", "bob"}, {{"data", R"({"cents":999})"}});
    const CheckReport report = check(bank);
    EXPECT_EQ(rules_and_items(report), Found{"projection sums/bob"}) << described(report);
}

TEST_F(CheckOfFollowers, says_what_it_could_not_compare) {
    bank.transact([](Transaction& tx) {
            auto checkpoint = tx.rows<detail::Checkpoint>().get("sums").value();
            ++checkpoint.parked;
            tx.rows<detail::Checkpoint>().put("sums", checkpoint);
            tx.rows<detail::ParkedRow>().put({"sums", "account-bob"}, set_aside());
        })
        .value();
    const CheckReport report = check(bank);
    EXPECT_EQ(rules_and_items(report), Found{}) << described(report);
    EXPECT_EQ(report.not_checked.size(), 1u) << described(report);
    EXPECT_FALSE(report.holds());
    expect_clean(check(bank, {.fold_projections = false}));
}

// While others write, and die

std::shared_ptr<store::ItemStore> in_a_file(const TemporaryFolder& folder) {
    return open("sqlite:" + (folder.path() / "bank.db").string());
}

/// Makes transfers and keeps customers until it is told to stop.
void write_on(std::shared_ptr<store::ItemStore> store, unsigned seed, const std::atomic<bool>& ends) {
    ApplicationOptions options;
    options.transactions.lease = 50ms;
    if (seed % 2 == 0) options.transactions.strategy = Strategy::protocol;
    Application bank{std::move(store), options};
    bank.project<Account, ProjectBalance>();
    std::mt19937 random{seed};
    const auto any = [&] { return "a" + std::to_string(random() % 5); };
    while (!ends) {
        try {
            const std::string from = any(), to = any();
            static_cast<void>(bank.transact(
                [&](Transaction& tx) {
                    tx.execute<Account>(from, Deposit{1});
                    if (to != from) tx.execute<Account>(to, Deposit{1});
                    const std::string email = any();
                    tx.rows<Client>().put(from, {.email = from + email, .city = to, .since = 5});
                    if (random() % 4 == 0) tx.rows<Client>().erase(to);
                },
                {.command_id = random() % 4 == 0 ? "id-" + std::to_string(random()) : ""}));
            static_cast<void>(bank.execute<Counter>(to, Deposit{1}));
        } catch (const Error& error) {
            EXPECT_TRUE(error.retryable() || error.in_doubt()) << error.what();
        }
    }
}

void check_while_four_write(const std::shared_ptr<store::ItemStore>& store) {
    Application bank{store, {.sweep = true}};
    bank.project<Account, ProjectBalance>();
    bank.follow<Account>(SumUp{});
    std::atomic<bool> ends = false;
    std::vector<std::jthread> writers;
    for (unsigned seed = 0; seed < 4; ++seed) writers.emplace_back([&, seed] { write_on(store, seed, ends); });
    const auto until =
        std::chrono::steady_clock::time_point{} + bank.runtime().clock.get().steady_now().time_since_epoch() + 2s;
    int looks = 0;
    do {
        const CheckReport report = check(bank, {.fold_projections = looks == 0});
        EXPECT_EQ(rules_and_items(report), Found{}) << described(report);
        ++looks;
    } while (bank.runtime().clock.get().steady_now().time_since_epoch() < until.time_since_epoch());
    ends = true;
    writers.clear();
    EXPECT_TRUE(bank.settle(60s));
    EXPECT_TRUE(bank.wait_for<SumUp>({}, 60s));
    const CheckReport report = check(bank);
    expect_clean(report);
    EXPECT_GT(report.slots, 20u);
    EXPECT_EQ(report.undecided + report.to_be_settled, 0u);
    EXPECT_GT(looks, 1);
}

TEST(CheckLive, finds_nothing_while_others_write_to_a_store_with_an_order_of_changes) {
    check_while_four_write(open("memory:"));
}

TEST(CheckLive, finds_nothing_while_others_write_to_a_store_without_it) {
    check_while_four_write(unordered());
}

TEST(CheckLive, finds_nothing_while_others_write_to_a_file) {
    const TemporaryFolder folder{"check"};
    check_while_four_write(in_a_file(folder));
}

struct Plain {
    static constexpr std::string_view table = "goods";
    std::string colour;
};
struct Indexed {
    static constexpr std::string_view table = "goods";
    std::string colour;
    using Indexes = varve::Indexes<Index<&Indexed::colour>>;
};

TEST(CheckLive, finds_nothing_while_an_index_is_added_and_dropped) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application plain{store, {.sweep = false}};
    Application indexed{store, {.sweep = false}};
    for (int i = 0; i < 60; ++i) {
        EXPECT_TRUE(plain.transact([&](Transaction& tx) { tx.rows<Plain>().put("g" + std::to_string(i), {"red"}); }));
    }
    std::atomic<bool> ends = false;
    std::jthread changing{[&] {
        for (int i = 0; i < 15; ++i) {
            EXPECT_EQ(indexed.build_indexes<Indexed>(OldPrograms::have_ended), 60u);
            EXPECT_EQ(plain.build_indexes<Plain>(OldPrograms::have_ended), 60u);
        }
        ends = true;
    }};
    std::size_t looks = 0;
    for (; !ends; ++looks) {
        Application stranger{store, {.sweep = false}};
        const CheckReport report = check(stranger);
        EXPECT_EQ(rules_and_items(report), Found{}) << described(report);
    }
    EXPECT_GT(looks, 2u);
}

TEST(CheckLive, takes_what_the_dead_have_left_for_unsettled_and_not_for_broken) {
    std::size_t unsettled = 0;
    for (const bool is_ordered : {true, false}) {
        for (int dies_at = 1; dies_at < 40; ++dies_at) {
            const std::shared_ptr<store::ItemStore> store = is_ordered ? open("memory:") : unordered();
            testing::ManualWorld world;
            Application bank{store, world.options()};
            EXPECT_TRUE(bank.execute<Account>("alice", Deposit{100}));
            {
                const auto dying = std::make_shared<DyingStore>(store, dies_at, 0x5555555555555555);
                try {
                    ApplicationOptions options{.retry = RetryPolicy::once()};
                    options.transactions.answer_time_max = 1ms;
                    options.transactions.strategy = Strategy::protocol;
                    Application dead{dying, world.options(options)};
                    dead.project<Account, ProjectBalance>();
                    static_cast<void>(dead.transact(
                        [&](Transaction& tx) {
                            tx.execute<Account>("alice", Withdraw{1});
                            tx.execute<Account>("bob", Deposit{1});
                            tx.rows<Client>().put("c", {.email = "e", .city = "c"});
                        },
                        {.command_id = "id"}));
                    world.later.drain();
                } catch (const Error&) {
                }
            }
            CheckReport report = check(bank, {.fold_projections = false});
            EXPECT_EQ(rules_and_items(report), Found{}) << dies_at << "\n" << described(report);
            unsettled += report.undecided + report.to_be_settled;
            EXPECT_TRUE(bank.settle(1h)) << dies_at;
            report = check(bank, {.fold_projections = false});
            expect_clean(report);
            EXPECT_EQ(report.undecided + report.to_be_settled, 0u) << dies_at;
        }
    }
    EXPECT_GT(unsettled, 10u);
}

TEST(CheckOfFile, finds_what_was_changed_in_a_file) {
    const TemporaryFolder folder{"check"};
    const std::shared_ptr<store::ItemStore> store = in_a_file(folder);
    Tampering by_hand{store};
    Application bank{store, {.sweep = false}};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(bank.execute<Account>("alice", Deposit{100}));
    EXPECT_TRUE(bank.transact([](Transaction& tx) { tx.rows<Client>().put("c1", {"ada@b.c", "Oslo", 2019}); }));
    EXPECT_TRUE(bank.transact([](Transaction& tx) { tx.rows<Client>().put("c2", {"cor@b.c", "Oslo", 2019}); }));
    expect_clean(check(bank));
    by_hand.erase(slot("account-alice", 2));
    by_hand.change({"customers", "c2"}, {{"data", std::int64_t{1}}});
    by_hand.put({"indexes", "customers/email", "bea@b.c\x01"},
                *by_hand.item({"indexes", "customers/email", "ada@b.c\x01"}));
    const CheckReport report = check(bank);
    const Found found = rules_and_items(report);
    for (const char* one : {"hole events/account-alice/2", "unreadable customers/c2"})
        EXPECT_NE(std::ranges::find(found, one), found.end()) << described(report);
    EXPECT_NE(described(report).find("bea@b.c"), std::string::npos) << described(report);
}

}  // namespace
}  // namespace varve::operations
