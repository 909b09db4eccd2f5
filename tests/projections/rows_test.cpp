#include "support/account.h"
#include "support/coordinator_of.h"
#include "support/hooked_store.h"
#include "transactions/sweeper.h"

#include <varve/store/base64.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Isolation;
using transactions::Path;
using transactions::Strategy;

/// A line of an account's statement, in the order of its date.
struct Line {
    static constexpr std::string_view table = "lines";
    static constexpr bool sorted = true;
    std::int64_t cents = 0;

    bool operator==(const Line&) const = default;
};

std::vector<std::string> sorts(const std::vector<RowOf<Line>>& rows) {
    std::vector<std::string> found;
    for (const auto& row : rows) found.push_back(row.key.sort);
    return found;
}

using Sorts = std::vector<std::string>;

class RowsTest : public ::testing::TestWithParam<Strategy> {
  protected:
    std::shared_ptr<store::ItemStore> inner_ = open("memory:");
    std::shared_ptr<HookedStore> store_ = std::make_shared<HookedStore>(inner_);
    testing::ManualWorld world_;
    Application bank_{store_, options()};
    Application other_{store_, options()};
    const store::Key alice_{"balances", "alice"};

    RowsTest() {
        static_cast<void>(bank_.rows<Balance>());
        static_cast<void>(bank_.rows<Line>());
    }
    ApplicationOptions options(ApplicationOptions with = {}) {
        with.transactions.strategy = GetParam();
        return world_.options(with);
    }
    std::optional<store::Item> item(const store::Key& key) { return inner_->read({&key, 1}).front(); }
    Receipt change(const std::function<void(Transaction&)>& body) { return bank_.transact(body).value(); }
    void put(const RowKey& key, std::int64_t cents) {
        change([&](Transaction& tx) { tx.rows<Balance>().put(key, {cents}); });
    }
    std::optional<Balance> get(const RowKey& key) { return bank_.rows<Balance>().get(key); }
};

INSTANTIATE_TEST_SUITE_P(Strategies, RowsTest, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

TEST_P(RowsTest, are_put_updated_and_erased) {
    change([](Transaction& tx) {
        auto rows = tx.rows<Balance>();
        rows.put("alice", {1});
        rows.put("bob", {2});
        rows.put("carol", {3});
    });
    change([](Transaction& tx) {
        auto rows = tx.rows<Balance>();
        rows.update("alice", [](Balance& row) { row.cents += 10; });
        rows.update("dave", [](Balance& row) { row.cents += 10; });
        rows.erase("bob");
        rows.erase("nobody");
    });
    world_.later.drain();
    EXPECT_EQ(bank_.rows<Balance>().get_all({"alice", "bob", "carol", "dave", "nobody"}),
              (std::vector<std::optional<Balance>>{Balance{11}, {}, Balance{3}, Balance{10}, {}}));
}

TEST_P(RowsTest, show_a_transaction_its_own_writes_and_nobody_else) {
    put("alice", 1);
    change([&](Transaction& tx) {
        tx.rows<Balance>().put("alice", {2});
        EXPECT_EQ(tx.rows<Balance>().get("alice"), Balance{2});
        EXPECT_EQ(other_.rows<Balance>().get("alice", Isolation::uncommitted), Balance{1});
        tx.rows<Balance>().erase("alice");
        EXPECT_EQ(tx.rows<Balance>().get("alice"), std::nullopt);
        tx.rows<Balance>().put("alice", {3});
    });
    EXPECT_EQ(get("alice"), Balance{3});
}

TEST_P(RowsTest, of_a_rejected_transaction_are_not_written) {
    put("alice", 1);
    EXPECT_FALSE(bank_.transact([](Transaction& tx) {
        tx.rows<Balance>().put("alice", {2});
        tx.reject({"no"});
    }));
    EXPECT_EQ(get("alice"), Balance{1});
}

TEST_P(RowsTest, deleted_and_inserted_in_one_transaction_are_changed) {
    put("alice", 1);
    change([](Transaction& tx) {
        tx.rows<Balance>().erase("alice");
        tx.rows<Balance>().put("alice", {2});
        tx.rows<Balance>().put("bob", {3});
        tx.rows<Balance>().erase("bob");
    });
    world_.later.drain();
    EXPECT_EQ(get("alice"), Balance{2});
    EXPECT_EQ(get("bob"), std::nullopt);
    EXPECT_EQ(item({"balances", "bob"}), std::nullopt) << "nothing came of it";
}

TEST_P(RowsTest, put_with_equal_data_are_only_validated) {
    put("alice", 1);
    world_.later.drain();
    const auto before = item(alice_);
    const Receipt receipt = change([](Transaction& tx) {
        tx.rows<Balance>().put("alice", {1});
        tx.rows<Balance>().put("bob", {1});
    });
    world_.later.drain();
    EXPECT_EQ(item(alice_), before);

    int runs = 0;
    change([&](Transaction& tx) {
        tx.rows<Balance>().put("alice", {1});
        tx.rows<Balance>().put("carol", {1});
        if (++runs == 1) {
            ASSERT_TRUE(other_.transact([](Transaction& o) { o.rows<Balance>().put("alice", {5}); }));
        }
    });
    EXPECT_EQ(runs, 2) << "it was no longer equal";
    EXPECT_EQ(get("alice"), Balance{1});
}

TEST_P(RowsTest, alone_commit_through_a_slot_of_their_transactions_own) {
    const Receipt receipt = change([](Transaction& tx) {
        tx.rows<Balance>().put("alice", {1});
        tx.rows<Balance>().put("bob", {2});
    });
    EXPECT_EQ(receipt.path, GetParam() == Strategy::automatic ? Path::native : Path::protocol);
    EXPECT_TRUE(receipt.written.empty()) << "no stream of the user's";
    const auto primary = item(transactions::slot_key(transactions::transaction_stream(receipt.transaction), 1));
    ASSERT_TRUE(primary);
    EXPECT_EQ(*store::text(*primary, "write_id"), receipt.transaction);
    world_.later.forget();
    EXPECT_EQ(get("alice"), Balance{1});
    EXPECT_EQ(get("bob"), Balance{2});
}

TEST_P(RowsTest, one_alone_is_one_conditional_write) {
    testing::CountingStore* counting = nullptr;
    auto counted = std::make_shared<testing::CountingStore>(inner_);
    counting = counted.get();
    Application bank{counted, options()};
    static_cast<void>(bank.rows<Balance>());
    counting->reset();
    EXPECT_EQ(bank.transact([](Transaction& tx) { tx.rows<Balance>().put("alice", {1}); })->path, Path::single);
    EXPECT_EQ(counting->counts().writes, 2u) << "where nothing was, a tombstone goes first";
    counting->reset();
    EXPECT_EQ(bank.transact([](Transaction& tx) { tx.rows<Balance>().put("alice", {2}); })->path, Path::single);
    EXPECT_EQ(counting->counts().writes, 1u);
    EXPECT_EQ(*store::text(*item(alice_), "data"), R"({"cents":2})");
}

// ---- deletion

TEST_P(RowsTest, leave_a_tombstone_for_the_retention_when_they_are_deleted) {
    put("alice", 1);
    const Receipt receipt = change([](Transaction& tx) { tx.rows<Balance>().erase("alice"); });
    world_.later.drain();
    const std::int64_t expires =
        std::chrono::ceil<std::chrono::seconds>(world_.clock.now() + std::chrono::hours{1}).time_since_epoch().count();
    const std::string writers = "{\"" + receipt.transaction + "\":" + std::to_string(expires) + "}";
    EXPECT_EQ(item(alice_), (store::Item{{"_rev", receipt.transaction}, {"_expires", expires}, {"_writers", writers}}));
    EXPECT_EQ(get("alice"), std::nullopt);
    EXPECT_TRUE(bank_.rows<Balance>().all({}).rows.empty());

    transactions::Sweeper sweeper{coordinator_of(bank_), {"balances"}};
    world_.clock.advance(std::chrono::hours{1} - std::chrono::seconds{1});
    sweeper.sweep();
    EXPECT_TRUE(item(alice_));
    world_.clock.advance(std::chrono::seconds{2});
    sweeper.sweep();
    EXPECT_EQ(item(alice_), std::nullopt);
}

TEST_P(RowsTest, inserted_on_a_tombstone_live_again) {
    put("alice", 1);
    change([](Transaction& tx) { tx.rows<Balance>().erase("alice"); });
    change([](Transaction& tx) {
        tx.rows<Balance>().put("alice", {2});
        tx.rows<Balance>().put("bob", {2});
    });
    EXPECT_EQ(get("alice"), Balance{2});
    world_.later.drain();
    EXPECT_FALSE(item(alice_)->contains("_expires"));
    EXPECT_FALSE(item(alice_)->contains("_was_expires"));
    world_.clock.advance(std::chrono::hours{3});
    transactions::Sweeper{coordinator_of(bank_), {"balances"}}.sweep();
    EXPECT_EQ(get("alice"), Balance{2});
}

TEST_P(RowsTest, whose_insert_on_a_tombstone_was_undone_are_the_tombstone_again) {
    put("alice", 1);
    change([](Transaction& tx) { tx.rows<Balance>().erase("alice"); });
    world_.later.drain();
    const auto tombstone = item(alice_);
    ASSERT_TRUE(tombstone->contains("_expires"));
    Application once{store_, options({.retry = RetryPolicy::once()})};
    EXPECT_THROW(static_cast<void>(once.transact([&](Transaction& tx) {
                     tx.rows<Balance>().put("alice", {2});
                     tx.rows<Balance>().put("bob", {2});
                     put("bob", 7);  // somebody else is quicker
                 })),
                 ConflictError);
    EXPECT_EQ(item(alice_), tombstone);
}

// ---- committed reads while transactions run

struct RowsUnderWay : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> inner = open("memory:");
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(inner);
    std::shared_ptr<testing::CountingStore> reading = std::make_shared<testing::CountingStore>(inner);
    Application writer{store, options({.transactions = {.strategy = Strategy::protocol}})};
    Application reader{reading, options()};
    const store::Key alice{"balances", "alice"};

    RowsUnderWay() {
        set(1, 1);
        later.drain();
    }
    void set(std::int64_t a, std::int64_t b) {
        ASSERT_TRUE(writer.transact([&](Transaction& tx) {
            tx.rows<Balance>().put("alice", {a});
            tx.rows<Balance>().put("bob", {b});
        }));
    }
    std::vector<std::optional<Balance>> read(Isolation isolation) {
        return reader.rows<Balance>().get_all({"alice", "bob"}, isolation);
    }
    std::optional<store::Item> item() { return inner->read({&alice, 1}).front(); }
};

using Two = std::vector<std::optional<Balance>>;

TEST_F(RowsUnderWay, committed_and_snapshot_reads_see_no_intention) {
    bool looked = false;
    store->before_write = [&](std::span<const store::Write> writes) {
        const auto* put = std::get_if<store::Put>(&writes.front().action);
        if (put == nullptr || looked) return;  // the commit is the first one that puts
        looked = true;
        ASSERT_TRUE(item()->contains("_after")) << "prepared, not yet committed";
        EXPECT_EQ(read(Isolation::uncommitted), (Two{Balance{2}, Balance{2}}));
        EXPECT_EQ(read(Isolation::committed), (Two{Balance{1}, Balance{1}}));
        EXPECT_EQ(read(Isolation::snapshot), (Two{Balance{1}, Balance{1}}));
        EXPECT_EQ(reader.rows<Balance>().all({}).rows.size(), 2u);
        EXPECT_EQ(reading->counts().writes, 0u) << "readers never write";
    };
    static_cast<void>(reader.rows<Balance>());
    reading->reset();
    set(2, 2);
    EXPECT_TRUE(looked);
}

TEST_F(RowsUnderWay, an_acknowledged_commit_is_seen_although_it_is_not_finalised) {
    set(2, 2);
    ASSERT_TRUE(item()->contains("_after"));
    static_cast<void>(reader.rows<Balance>());
    reading->reset();
    EXPECT_EQ(read(Isolation::committed), (Two{Balance{2}, Balance{2}}));
    EXPECT_EQ(read(Isolation::snapshot), (Two{Balance{2}, Balance{2}}));
    EXPECT_EQ(reader.rows<Balance>().get("alice"), Balance{2});
    EXPECT_EQ(reader.rows<Balance>().all({}).rows.size(), 2u);
    EXPECT_EQ(reading->counts().writes, 0u);
    EXPECT_EQ(read(Isolation::serializable), (Two{Balance{2}, Balance{2}}));
    EXPECT_FALSE(item()->contains("_after")) << "a transaction settles what it meets";
}

TEST_F(RowsUnderWay, an_acknowledged_deletion_is_seen_although_it_is_not_finalised) {
    ASSERT_TRUE(writer.transact([](Transaction& tx) {
        tx.rows<Balance>().erase("alice");
        tx.rows<Balance>().put("bob", {3});
    }));
    EXPECT_TRUE(item()->contains("data")) << "the old image is still in place";
    EXPECT_EQ(read(Isolation::committed), (Two{{}, Balance{3}}));
    EXPECT_EQ(reader.rows<Balance>().all({}).rows.size(), 1u);
}

TEST_F(RowsUnderWay, an_item_carries_both_images_and_raw_readers_find_committed_data_in_place) {
    const std::string rev = *store::text(*item(), "_rev");
    set(2, 2);
    EXPECT_EQ(*store::text(*item(), "data"), R"({"cents":1})");
    EXPECT_EQ(*store::text(*item(), "_rev"), rev);
    EXPECT_EQ(*store::text(*item(), "_after"), R"({"cents":2})");
    const std::string tx = *store::text(*item(), "_tx");
    later.drain();
    EXPECT_EQ(item(), (store::Item{{"data", R"({"cents":2})"}, {"_rev", tx}}));
}

TEST_F(RowsUnderWay, an_intention_to_insert_is_nothing_to_a_raw_reader) {
    ASSERT_TRUE(writer.transact([](Transaction& tx) {
        for (const char* id : {"carol", "dave"}) tx.rows<Balance>().put(id, {1});
    }));
    const store::Key carol{"balances", "carol"};
    const auto raw = inner->read({&carol, 1}).front();
    ASSERT_TRUE(raw);
    EXPECT_FALSE(raw->contains("data"));
    EXPECT_FALSE(raw->contains("_rev"));
    EXPECT_EQ(reader.rows<Balance>().get("carol"), Balance{1});
}

TEST_F(RowsUnderWay, a_transaction_reads_a_range_once_more_however_many_intentions_it_meets_there) {
    ASSERT_TRUE(writer.transact([](Transaction& tx) {
        for (int i = 100; i < 150; ++i) tx.rows<Line>().put({"many", std::to_string(i)}, {i});
    }));
    static_cast<void>(reader.rows<Line>());
    reading->reset();
    EXPECT_EQ(reader.rows<Line>().range({"many"}, {}, Isolation::serializable).rows.size(), 50u);
    EXPECT_EQ(reading->counts().queries, 3u) << "once to settle what it met, once to read, once to validate";
}

TEST_F(RowsUnderWay, a_writer_finalises_what_it_builds_on) {
    set(2, 2);
    later.forget();  // its owner died
    Application heir{inner, options({.transactions = {.strategy = Strategy::protocol}})};
    ASSERT_TRUE(heir.transact([](Transaction& tx) {
        tx.rows<Balance>().update("alice", [](Balance& row) { row.cents += 10; });
        tx.rows<Balance>().update("bob", [](Balance& row) { row.cents += 10; });
    }));
    EXPECT_EQ(read(Isolation::committed), (Two{Balance{12}, Balance{12}}));
    EXPECT_EQ(heir.metrics().finalised_for_others, 2u);
}

// ---- ranges

struct RangesTest : RowsTest {
    RangesTest() {
        change([](Transaction& tx) {
            auto rows = tx.rows<Line>();
            for (const char* sort : {"01", "03", "05", "07"}) rows.put({"alice", sort}, {1});
            rows.put({"bob", "04"}, {1});
        });
    }
    Sorts range(RowRange range, Isolation isolation = Isolation::committed) {
        return sorts(bank_.rows<Line>().range(range, {.limit = 2000}, isolation).rows);
    }
};

INSTANTIATE_TEST_SUITE_P(Strategies, RangesTest, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

TEST_P(RangesTest, are_of_one_partition_in_order_with_both_ends) {
    for (const Isolation isolation :
         {Isolation::uncommitted, Isolation::committed, Isolation::snapshot, Isolation::serializable}) {
        EXPECT_EQ(range({"alice"}, isolation), (Sorts{"01", "03", "05", "07"}));
        EXPECT_EQ(range({"alice", "03", "05"}, isolation), (Sorts{"03", "05"}));
        EXPECT_EQ(range({"alice", "02"}, isolation), (Sorts{"03", "05", "07"}));
        EXPECT_EQ(range({.partition = "alice", .last = "04"}, isolation), (Sorts{"01", "03"}));
        EXPECT_EQ(range({.partition = "alice", .first = "02", .last = "05", .descending = true}, isolation),
                  (Sorts{"05", "03"}));
        EXPECT_TRUE(range({"carol"}, isolation).empty());
    }
}

TEST_P(RangesTest, show_a_transaction_its_own_writes) {
    change([](Transaction& tx) {
        auto rows = tx.rows<Line>();
        rows.put({"alice", "02"}, {2});
        rows.erase({"alice", "03"});
        rows.put({"alice", "05"}, {5});
        rows.put({"alice", "09"}, {9});
        rows.put({"bob", "02"}, {2});
        EXPECT_EQ(sorts(rows.range({"alice"}).to_vector()), (Sorts{"01", "02", "05", "07", "09"}));
        EXPECT_EQ(sorts(rows.range({"alice", "02", "05"}).to_vector()), (Sorts{"02", "05"}));
        EXPECT_EQ(sorts(rows.range({.partition = "alice", .first = "02", .descending = true}).to_vector()),
                  (Sorts{"09", "07", "05", "02"}));
        EXPECT_EQ(rows.range({"alice", "05", "05"}).begin()->value, Line{5});
    });
    EXPECT_EQ(range({"alice"}), (Sorts{"01", "02", "05", "07", "09"}));
}

TEST_P(RangesTest, see_intentions_as_their_transactions_stand) {
    change([](Transaction& tx) {
        auto rows = tx.rows<Line>();
        rows.put({"alice", "02"}, {2});
        rows.erase({"alice", "03"});
    });
    EXPECT_EQ(range({"alice"}), (Sorts{"01", "02", "05", "07"}));
    EXPECT_EQ(range({"alice"}, Isolation::snapshot), (Sorts{"01", "02", "05", "07"}));
    world_.later.drain();
    EXPECT_EQ(range({"alice"}), (Sorts{"01", "02", "05", "07"}));
}

/// How often the body of a transaction ran that read the range 02 to 06 of alice, while another one did `meanwhile`.
int runs_while(Application& bank, Application& other, const std::function<void(RowsInTransaction<Line>)>& meanwhile) {
    int runs = 0;
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        const auto found = tx.rows<Line>().range({"alice", "02", "06"}).to_vector();
        if (++runs == 1) {
            EXPECT_TRUE(other.transact([&](Transaction& o) { meanwhile(o.rows<Line>()); }));
        }
        tx.rows<Balance>().put("alice", {static_cast<std::int64_t>(found.size())});
    });
    EXPECT_TRUE(outcome);
    return runs;
}

TEST_P(RangesTest, are_validated_and_phantoms_abort) {
    using Lines = RowsInTransaction<Line>;
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.put({"alice", "04"}, {1}); }), 2) << "inserted";
    EXPECT_EQ(get("alice"), Balance{3});
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.erase({"alice", "04"}); }), 2) << "deleted";
    EXPECT_EQ(get("alice"), Balance{2});
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.put({"alice", "04"}, {2}); }), 2) << "on a tombstone";
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.put({"alice", "04"}, {3}); }), 2) << "changed";
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.put({"alice", "08"}, {1}); }), 1) << "beyond its end";
    EXPECT_EQ(runs_while(bank_, other_, [](Lines rows) { rows.put({"bob", "05"}, {1}); }), 1) << "not its partition";
}

TEST_P(RangesTest, that_were_only_read_are_validated_too) {
    int runs = 0;
    Sorts seen;
    ASSERT_TRUE(bank_.transact([&](Transaction& tx) {
        seen = sorts(tx.rows<Line>().range({"alice"}).to_vector());
        if (++runs == 1) {
            ASSERT_TRUE(other_.transact([](Transaction& o) { o.rows<Line>().put({"alice", "02"}, {1}); }));
        }
        static_cast<void>(tx.rows<Line>().range({"bob"}, {}));
    }));
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(seen, (Sorts{"01", "02", "03", "05", "07"}));
}

TEST_P(RangesTest, do_not_conflict_with_the_transactions_own_writes_in_them) {
    int runs = 0;
    change([&](Transaction& tx) {
        ++runs;
        auto rows = tx.rows<Line>();
        for (const auto& row : rows.range({"alice"})) rows.put(row.key, {row.value.cents + 1});
        rows.put({"alice", "09"}, {2});
        rows.erase({"alice", "01"});
    });
    EXPECT_EQ(runs, 1);
    for (const auto& row : bank_.rows<Line>().range({"alice"})) EXPECT_EQ(row.value, Line{2});
}

TEST_P(RangesTest, do_not_end_where_a_page_ends) {
    change([](Transaction& tx) {
        for (int i = 0; i < 500; ++i) tx.rows<Line>().put({"many", std::to_string(1000 + i)}, {i});
    });
    change([](Transaction& tx) {
        for (int i = 500; i < 1300; ++i) tx.rows<Line>().put({"many", std::to_string(1000 + i)}, {i});
    });
    world_.later.drain();
    EXPECT_EQ(range({"many"}).size(), 1300u);
    EXPECT_EQ(range({"many"}, Isolation::serializable).size(), 1300u);
    EXPECT_EQ(bank_.rows<Line>().all().to_vector().size(), 1305u);
    EXPECT_EQ(bank_.rows<Line>().all({.limit = 2000}, Isolation::uncommitted).rows.size(), 1305u);
}

TEST_P(RangesTest, all_rows_are_read_at_two_levels_only) {
    EXPECT_THROW(static_cast<void>(bank_.rows<Line>().all({}, Isolation::snapshot)), InvalidError);
    EXPECT_THROW(static_cast<void>(bank_.rows<Line>().all({}, Isolation::serializable)), InvalidError);
    Sorts found = sorts(bank_.rows<Line>().all().to_vector());
    std::ranges::sort(found);
    EXPECT_EQ(found, (Sorts{"01", "03", "04", "05", "07"}));
}

// ---- pages

/// The sort keys of each page, until the list ends.
template <class Rows>
std::vector<Sorts> pages(const Rows& rows, const RowRange& range, std::size_t limit) {
    std::vector<Sorts> found;
    PageOptions options{.limit = limit};
    do {
        RowPage<Line> page = rows.range(range, options);
        found.push_back(sorts(page.rows));
        options.next = std::move(page.next);
    } while (!options.next.empty());
    return found;
}

TEST_P(RangesTest, come_in_pages_in_both_directions) {
    const auto rows = bank_.rows<Line>();
    EXPECT_EQ(pages(rows, {"alice"}, 3), (std::vector<Sorts>{{"01", "03", "05"}, {"07"}}));
    EXPECT_EQ(pages(rows, {.partition = "alice", .descending = true}, 3),
              (std::vector<Sorts>{{"07", "05", "03"}, {"01"}}));
    EXPECT_EQ(pages(rows, {"alice", "03", "07"}, 2), (std::vector<Sorts>{{"03", "05"}, {"07"}}));
    EXPECT_EQ(pages(rows, {"alice"}, 1), (std::vector<Sorts>{{"01"}, {"03"}, {"05"}, {"07"}}));
    EXPECT_EQ(pages(rows, {"nobody"}, 1), (std::vector<Sorts>{{}}));
    for (const Isolation isolation : {Isolation::uncommitted, Isolation::snapshot, Isolation::serializable}) {
        const RowPage<Line> first = rows.range({"alice"}, {.limit = 3}, isolation);
        EXPECT_EQ(sorts(first.rows), (Sorts{"01", "03", "05"}));
        EXPECT_EQ(sorts(rows.range({"alice"}, {.limit = 3, .next = first.next}, isolation).rows), (Sorts{"07"}));
    }
}

TEST_P(RangesTest, have_full_pages_where_rows_were_deleted) {
    change([](Transaction& tx) {
        for (const char* sort : {"01", "03", "05"}) tx.rows<Line>().erase({"alice", sort});
        tx.rows<Line>().put({"alice", "09"}, {1});
    });
    EXPECT_EQ(sorts(bank_.rows<Line>().range({"alice"}).to_vector()), (Sorts{"07", "09"}));
    world_.later.drain();
    EXPECT_EQ(pages(bank_.rows<Line>(), {"alice"}, 1), (std::vector<Sorts>{{"07"}, {"09"}}));
}

TEST_P(RangesTest, show_a_transaction_its_own_writes_page_by_page) {
    change([](Transaction& tx) {
        const auto rows = tx.rows<Line>();
        rows.put({"alice", "02"}, {2});
        rows.erase({"alice", "03"});
        rows.put({"alice", "09"}, {9});
        Sorts all;
        for (const Sorts& page : pages(rows, {"alice"}, 2)) {
            EXPECT_LE(page.size(), 2u);
            all.insert(all.end(), page.begin(), page.end());
        }
        EXPECT_EQ(all, (Sorts{"01", "02", "05", "07", "09"}));
    });
}

TEST_P(RangesTest, are_validated_as_far_as_they_were_read) {
    const auto runs_with = [&](const char* inserted) {
        int runs = 0;
        change([&](Transaction& tx) {
            const RowPage<Line> page = tx.rows<Line>().range({"alice"}, {.limit = 2});
            if (++runs == 1) {
                ASSERT_TRUE(other_.transact([&](Transaction& o) { o.rows<Line>().put({"alice", inserted}, {1}); }));
            }
            tx.rows<Balance>().put("alice", {static_cast<std::int64_t>(page.rows.size())});
        });
        return runs;
    };
    EXPECT_EQ(runs_with("02"), 2) << "a phantom on the page";
    EXPECT_EQ(runs_with("06"), 1) << "beyond the page";
}

TEST_P(RangesTest, go_on_only_with_a_token_of_their_own) {
    const auto rows = bank_.rows<Line>();
    const std::string next = rows.range({"alice"}, {.limit = 1}).next;
    ASSERT_FALSE(next.empty());
    const auto refuses = [&](const RowRange& range, const PageOptions& page) {
        try {
            static_cast<void>(rows.range(range, page));
            return false;
        } catch (const InvalidError& error) {
            return std::string{error.what()}.find(page.next) != std::string::npos;
        }
    };
    EXPECT_TRUE(refuses({"bob"}, {.next = next}));
    EXPECT_TRUE(refuses({"alice", "02"}, {.next = next}));
    EXPECT_TRUE(refuses({.partition = "alice", .descending = true}, {.next = next}));
    EXPECT_TRUE(refuses({"alice"}, {.next = next.substr(0, 4)}));
    EXPECT_TRUE(refuses({"alice"}, {.next = "not a token"}));
    EXPECT_TRUE(refuses({"alice"}, {.next = rows.all({.limit = 1}).next}));
    EXPECT_TRUE(refuses({"alice"}, {.limit = 0}));
    EXPECT_THROW(static_cast<void>(rows.all({.next = next})), InvalidError);
    EXPECT_THROW(static_cast<void>(rows.all({.limit = 0})), InvalidError);
}

TEST_P(RangesTest, show_nothing_beyond_their_ends_whatever_the_token_says) {
    const auto rows = bank_.rows<Line>();
    for (const bool descending : {false, true}) {
        const RowRange range{.partition = "alice", .first = "03", .last = "05", .descending = descending};
        const store::Bytes token = store::parse_base64(rows.range(range, {.limit = 1}).next).value();
        const auto forged = [&](std::string_view place) {
            store::Bytes bytes{token.begin(), token.begin() + 16};
            for (const char c : place) bytes.push_back(static_cast<std::byte>(c));
            return store::base64(bytes);
        };
        for (const char* place : {"", "01", "07", "\xff"}) {
            EXPECT_THROW(static_cast<void>(rows.range(range, {.next = forged(place)})), InvalidError) << place;
            EXPECT_THROW(change([&](Transaction& tx) { (void)tx.rows<Line>().range(range, {.next = forged(place)}); }),
                         InvalidError);
        }
        EXPECT_EQ(sorts(rows.range(range, {.next = forged("04")}).rows), (Sorts{descending ? "03" : "05"}));
    }
}

TEST_P(RangesTest, of_a_whole_table_come_in_pages_too) {
    Sorts found;
    PageOptions options{.limit = 2};
    do {
        RowPage<Line> page = bank_.rows<Line>().all(options);
        EXPECT_LE(page.rows.size(), 2u);
        for (const auto& row : page.rows) found.push_back(row.key.partition + row.key.sort);
        options.next = std::move(page.next);
    } while (!options.next.empty());
    std::ranges::sort(found);
    EXPECT_EQ(found, (Sorts{"alice01", "alice03", "alice05", "alice07", "bob04"}));
}

// ---- what is refused

struct MineIsTheEvents {
    static constexpr std::string_view table = "events";
};
struct MineIsTheSystem {
    static constexpr std::string_view table = "varve";
};
struct BalanceSorted {
    static constexpr std::string_view table = "balances";
    static constexpr bool sorted = true;
};

TEST_P(RowsTest, may_not_be_in_the_frameworks_own_tables) {
    EXPECT_THROW(static_cast<void>(bank_.rows<MineIsTheEvents>()), InvalidError);
    EXPECT_THROW(static_cast<void>(bank_.rows<MineIsTheSystem>()), InvalidError);
    EXPECT_THROW(change([](Transaction& tx) { tx.rows<MineIsTheEvents>().put("a", {}); }), InvalidError);
}

TEST_P(RowsTest, have_keys_of_one_part_or_of_two) {
    auto balances = bank_.rows<Balance>();
    auto lines = bank_.rows<Line>();
    EXPECT_THROW(static_cast<void>(balances.get({"alice", "01"})), InvalidError);
    EXPECT_THROW(static_cast<void>(balances.range({"alice"}, {})), InvalidError);
    EXPECT_THROW(static_cast<void>(lines.get("alice")), InvalidError);
    EXPECT_THROW(change([](Transaction& tx) { tx.rows<Line>().put("alice", {1}); }), InvalidError);
    EXPECT_THROW(change([](Transaction& tx) { tx.rows<Balance>().erase({"alice", "01"}); }), InvalidError);
}

struct Pile {
    static constexpr std::string_view table = "piles";
    std::string name;
};

TEST_P(RowsTest, may_have_a_field_called_name) {
    change([](Transaction& tx) { tx.rows<Pile>().put("a", {.name = "paper"}); });
    EXPECT_EQ(bank_.rows<Pile>().get("a")->name, "paper");
}

TEST_P(RowsTest, have_one_shape_per_table) {
    Application later_version{store_, options()};
    EXPECT_THROW(static_cast<void>(later_version.rows<BalanceSorted>()), ConfigError);
}

TEST_P(RowsTest, that_cannot_be_read_are_an_error_that_names_them) {
    const store::Write damaged{alice_, store::Put{{{"data", R"({"cents":"many"})"}, {"_rev", "r"}}}};
    static_cast<void>(inner_->write({&damaged, 1}));
    try {
        static_cast<void>(get("alice"));
        FAIL();
    } catch (const CorruptionError& error) {
        EXPECT_NE(std::string{error.what()}.find("balances/alice"), std::string::npos) << error.what();
    }
    const store::Write foreign{alice_, store::Put{{{"something", "else"}}}};
    static_cast<void>(inner_->write({&foreign, 1}));
    EXPECT_THROW(static_cast<void>(get("alice")), CorruptionError);
    EXPECT_THROW(static_cast<void>(bank_.rows<Balance>().all({})), CorruptionError);
}

}  // namespace
}  // namespace varve
