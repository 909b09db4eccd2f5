#include "support/account.h"
#include "support/hooked_store.h"
#include "support/unordered_store.h"

#include <varve/rows/indexes.h>
#include <varve/store/item_store.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using transactions::Isolation;
using transactions::Strategy;
using Keys = std::vector<std::string>;

enum class Level { gold, basic };

struct Customer {
    static constexpr std::string_view table = "customers";
    std::string email;
    std::string city;
    std::int64_t points = 0;
    bool active = true;
    std::optional<std::string> voucher;
    Level level = Level::basic;
    double rate = 0;
    std::string note;
    using Indexes = varve::Indexes<Unique<&Customer::email>, Index<&Customer::city>, Index<&Customer::points>,
                                   Index<&Customer::active>, Unique<&Customer::voucher>, Index<&Customer::level>,
                                   Index<&Customer::rate>>;
    bool operator==(const Customer&) const = default;
};

/// A line of a customer's bill; its key has two parts.
struct BillLine {
    static constexpr std::string_view table = "bill_lines";
    static constexpr bool sorted = true;
    std::string article;
    using Indexes = varve::Indexes<Index<&BillLine::article>>;
};

template <class T>
Keys keys(const std::vector<RowOf<T>>& rows) {
    Keys found;
    for (const auto& row : rows) found.push_back(row.key.partition + row.key.sort);
    return found;
}

/// What the indexes of Customer must say, and what they say in the store, as "field=value>key".
using Entries = std::multiset<std::string>;

Entries entries_expected(Application& application) {
    Entries entries;
    for (const auto& [key, row] : application.rows<Customer>().all()) {
        entries.insert("email=" + row.email + ">" + key.partition);
        entries.insert("city=" + row.city + ">" + key.partition);
        if (row.voucher) entries.insert("voucher=" + *row.voucher + ">" + key.partition);
    }
    return entries;
}

struct StoredEntry {
    std::string partition;
    std::string sort;
};

Entries entries_stored(store::ItemStore& store) {
    Entries entries;
    for (const char* field : {"email", "city", "voucher"}) {
        store::Query query{.table = "indexes", .partition = std::string{"customers/"} + field};
        do {
            store::Page page = store.query(query);
            for (const auto& [key, item] : page.records) {
                const std::string* const data = store::text(item, "data");
                if (data == nullptr) continue;
                const std::string& sort = std::get<std::string>(key.sort);
                entries.insert(std::string{field} + "=" + sort.substr(0, sort.find('\x01')) + ">" +
                               json::decode<StoredEntry>(*data).value().partition);
            }
            query.next = page.next;
        } while (query.next);
    }
    return entries;
}

class IndexesTest : public ::testing::TestWithParam<Strategy> {
  protected:
    std::shared_ptr<store::ItemStore> inner_ = open("memory:");
    std::shared_ptr<HookedStore> store_ = std::make_shared<HookedStore>(inner_);
    testing::ManualWorld world_;
    Application shop_{store_, options()};
    Application other_{store_, options()};

    ApplicationOptions options(ApplicationOptions with = {}) {
        with.transactions.strategy = GetParam();
        return world_.options(with);
    }
    Outcome put(const std::string& key, const Customer& customer) {
        return shop_.transact([&](Transaction& tx) { tx.rows<Customer>().put(key, customer); });
    }
    Customer email(const std::string& email, const std::string& city = "Oslo") {
        return {.email = email, .city = city, .voucher = {}, .note = {}};
    }
    std::string found(const std::string& email) {
        const auto row = shop_.rows<Customer>().find<&Customer::email>(email);
        return row ? row->key.partition : "";
    }
};

INSTANTIATE_TEST_SUITE_P(Strategies, IndexesTest, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

TEST_P(IndexesTest, find_a_row_by_a_unique_value) {
    ASSERT_TRUE(put("c1", email("a@b.c")));
    ASSERT_TRUE(put("c2", email("d@e.f")));
    const auto row = shop_.rows<Customer>().find<&Customer::email>("a@b.c");
    ASSERT_TRUE(row);
    EXPECT_EQ(row->key.partition, "c1");
    EXPECT_EQ(row->value, email("a@b.c"));
    EXPECT_EQ(found("nobody"), "");

    ASSERT_TRUE(put("c1", email("new@b.c")));
    EXPECT_EQ(found("a@b.c"), "") << "before it is finalised";
    EXPECT_EQ(found("new@b.c"), "c1");
    world_.later.drain();
    EXPECT_EQ(found("a@b.c"), "");
    EXPECT_EQ(found("new@b.c"), "c1");
    ASSERT_TRUE(shop_.transact([](Transaction& tx) { tx.rows<Customer>().erase("c1"); }));
    EXPECT_EQ(found("new@b.c"), "");
    world_.later.drain();
    EXPECT_EQ(entries_stored(*inner_), (Entries{"email=d@e.f>c2", "city=Oslo>c2"}));
}

TEST_P(IndexesTest, find_rows_by_a_value_a_range_and_a_prefix_in_both_directions) {
    const auto rows = shop_.rows<Customer>();
    const std::vector<std::pair<const char*, std::int64_t>> cities{{"Oslo", 5},  {"Os", -3},     {"Oslo", -100},
                                                                   {"Osaka", 0}, {"Bergen", 70}, {"Oslo S", 5}};
    for (std::size_t i = 0; i < cities.size(); ++i) {
        Customer one = email("e" + std::to_string(i), cities[i].first);
        one.points = cities[i].second;
        one.active = i % 2 == 0;
        one.level = i < 2 ? Level::gold : Level::basic;
        one.rate = static_cast<double>(cities[i].second) / 8;
        ASSERT_TRUE(put("c" + std::to_string(i), one));
    }
    world_.later.drain();
    EXPECT_EQ(keys(rows.where<&Customer::city>("Oslo").to_vector()), (Keys{"c0", "c2"}));
    EXPECT_EQ(keys(rows.where<&Customer::city>("O").to_vector()), (Keys{}));
    EXPECT_EQ(keys(rows.starting_with<&Customer::city>({"Os"}).to_vector()), (Keys{"c1", "c3", "c0", "c2", "c5"}));
    EXPECT_EQ(keys(rows.starting_with<&Customer::city>({.prefix = "Osl", .descending = true}).to_vector()),
              (Keys{"c5", "c2", "c0"}));
    EXPECT_EQ(keys(rows.starting_with<&Customer::city>({""}).to_vector()).size(), 6u);
    EXPECT_EQ(keys(rows.between<&Customer::points>({}).to_vector()), (Keys{"c2", "c1", "c3", "c0", "c5", "c4"}));
    EXPECT_EQ(keys(rows.between<&Customer::points>({.first = -3, .last = 5}).to_vector()),
              (Keys{"c1", "c3", "c0", "c5"}));
    EXPECT_EQ(keys(rows.between<&Customer::points>({.last = -1, .descending = true}).to_vector()), (Keys{"c1", "c2"}));
    EXPECT_EQ(keys(rows.between<&Customer::rate>({.first = -0.5}).to_vector()), (Keys{"c1", "c3", "c0", "c5", "c4"}));
    EXPECT_EQ(keys(rows.where<&Customer::active>(false).to_vector()), (Keys{"c1", "c3", "c5"}));
    EXPECT_EQ(keys(rows.where<&Customer::level>(Level::gold).to_vector()), (Keys{"c0", "c1"}));

    Keys paged;
    PageOptions options{.limit = 2};
    do {
        RowPage<Customer> page = rows.between<&Customer::points>({.descending = true}, options);
        EXPECT_LE(page.rows.size(), 2u);
        for (const std::string& key : keys(page.rows)) paged.push_back(key);
        options.next = std::move(page.next);
    } while (!options.next.empty());
    EXPECT_EQ(paged, (Keys{"c4", "c5", "c0", "c3", "c1", "c2"}));
    const std::string next = rows.where<&Customer::city>("Oslo", {.limit = 1}).next;
    EXPECT_EQ(keys(rows.where<&Customer::city>("Oslo", {.next = next}).rows), (Keys{"c2"}));
    EXPECT_THROW(static_cast<void>(rows.where<&Customer::city>("Bergen", {.next = next})), InvalidError);
}

TEST_P(IndexesTest, are_of_rows_with_keys_of_two_parts_too) {
    ASSERT_TRUE(shop_.transact([](Transaction& tx) {
        tx.rows<BillLine>().put({"alice", "1"}, {"tea"});
        tx.rows<BillLine>().put({"alice", "2"}, {"bread"});
        tx.rows<BillLine>().put({"bob", "1"}, {"tea"});
    }));
    EXPECT_EQ(keys(shop_.rows<BillLine>().where<&BillLine::article>("tea").to_vector()), (Keys{"alice1", "bob1"}));
}

TEST_P(IndexesTest, have_values_with_any_characters) {
    const std::vector<std::string> values{std::string{"\0", 1}, "\x01", "\x01\x01", "\x02", "\x02\x01", "\x03", "", "é",
                                          "\xF4\x8F\xBF\xBF"};
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(put("c" + std::to_string(i), email("e" + std::to_string(i), values[i])));
    const auto rows = shop_.rows<Customer>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(keys(rows.where<&Customer::city>(values[i]).to_vector()), (Keys{"c" + std::to_string(i)}));
        for (const std::string& prefix : values) {
            const Keys with = keys(rows.starting_with<&Customer::city>({prefix}).to_vector());
            EXPECT_EQ(std::ranges::count(with, "c" + std::to_string(i)) == 1, values[i].starts_with(prefix));
        }
    }
    std::vector<std::string> in_order;
    for (const auto& row : rows.between<&Customer::city>({})) in_order.push_back(row.value.city);
    std::vector<std::string> sorted = values;
    std::ranges::sort(sorted);
    EXPECT_EQ(in_order, sorted);
}

TEST_P(IndexesTest, refuse_a_second_row_with_a_unique_value_by_name) {
    ASSERT_TRUE(put("c1", email("a@b.c")));
    const Outcome refused = put("c2", email("a@b.c"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "not_unique");
    for (const char* part : {"customers.email", "'a@b.c'", "customers/c1"})
        EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    EXPECT_EQ(shop_.rows<Customer>().get("c2"), std::nullopt);

    const Outcome both = shop_.transact([&](Transaction& tx) {
        tx.rows<Customer>().put("c3", email("x"));
        tx.rows<Customer>().put("c4", email("x"));
    });
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error().code, "not_unique");
    EXPECT_EQ(found("x"), "");
    ASSERT_TRUE(put("c1", email("a@b.c", "Bergen"))) << "it is its own";
}

TEST_P(IndexesTest, let_any_number_of_rows_be_without_an_optional_value) {
    ASSERT_TRUE(put("c1", email("a")));
    ASSERT_TRUE(put("c2", email("b")));
    Customer with = email("a");
    with.voucher = "v";
    ASSERT_TRUE(put("c1", with));
    with.email = "b";
    EXPECT_FALSE(put("c2", with));
    EXPECT_EQ(shop_.rows<Customer>().find<&Customer::voucher>("v")->key.partition, "c1");
}

TEST_P(IndexesTest, let_values_be_swapped_and_moved_within_a_transaction) {
    ASSERT_TRUE(put("c1", email("x")));
    ASSERT_TRUE(put("c2", email("y")));
    ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
        tx.rows<Customer>().put("c1", email("y"));
        tx.rows<Customer>().put("c2", email("x"));
    }));
    EXPECT_EQ(found("x") + found("y"), "c2c1");
    ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
        tx.rows<Customer>().erase("c2");
        tx.rows<Customer>().put("c3", email("x"));
    }));
    EXPECT_EQ(found("x"), "c3");
    ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
        tx.rows<Customer>().put("c3", email("z"));
        tx.rows<Customer>().put("c4", email("x"));
        tx.rows<Customer>().put("c3", email("w"));
    }));
    world_.later.drain();
    EXPECT_EQ(found("x") + found("w") + found("z"), "c4c3");
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
}

TEST_P(IndexesTest, show_a_transaction_what_it_has_written) {
    ASSERT_TRUE(put("c1", email("x")));
    ASSERT_TRUE(put("c2", email("y", "Bergen")));
    ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
        const auto rows = tx.rows<Customer>();
        rows.put("c1", email("new", "Bergen"));
        rows.put("c3", email("x"));
        EXPECT_EQ(rows.find<&Customer::email>("x")->key.partition, "c3");
        EXPECT_EQ(rows.find<&Customer::email>("new")->key.partition, "c1");
        EXPECT_EQ(keys(rows.where<&Customer::city>("Bergen").to_vector()), (Keys{"c1", "c2"}));
        rows.erase("c2");
        EXPECT_EQ(keys(rows.where<&Customer::city>("Bergen").to_vector()), (Keys{"c1"}));
        EXPECT_FALSE(rows.find<&Customer::email>("y"));
        rows.put("c3", email("last"));
    }));
    world_.later.drain();
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
    EXPECT_EQ(found("last"), "c3");
}

TEST_P(IndexesTest, are_validated_when_a_transaction_has_read_them) {
    const auto runs_with = [&](const std::function<void(RowsInTransaction<Customer>)>& read, const char* key,
                               const Customer& meanwhile) {
        int runs = 0;
        EXPECT_TRUE(shop_.transact([&](Transaction& tx) {
            read(tx.rows<Customer>());
            if (++runs == 1) {
                EXPECT_TRUE(other_.transact([&](Transaction& o) { o.rows<Customer>().put(key, meanwhile); }));
            }
            tx.rows<Balance>().put("alice", {runs});
        }));
        return runs;
    };
    const auto finds = [](RowsInTransaction<Customer> rows) { (void)rows.find<&Customer::email>("a"); };
    const auto lists = [](RowsInTransaction<Customer> rows) { (void)rows.where<&Customer::city>("Oslo", {}); };
    EXPECT_EQ(runs_with(finds, "c1", email("b", "Bergen")), 1) << "of no concern";
    EXPECT_EQ(runs_with(finds, "c2", email("a", "Bergen")), 2) << "there was none";
    EXPECT_EQ(runs_with(finds, "c2", email("c", "Bergen")), 2) << "it had it";
    EXPECT_EQ(runs_with(lists, "c3", email("d", "Oslo")), 2) << "a phantom";
    EXPECT_EQ(runs_with(lists, "c3", email("d", "Bergen")), 2) << "it had it";
    EXPECT_EQ(runs_with(lists, "c4", email("e", "Bergen")), 1) << "of no concern";
}

TEST_P(IndexesTest, let_exactly_one_of_two_claims_through) {
    bool others = false;
    int runs = 0;
    const Outcome mine = shop_.transact([&](Transaction& tx) {
        tx.rows<Customer>().put("c1", email("x"));
        if (++runs == 1) {
            others = other_.transact([&](Transaction& o) { o.rows<Customer>().put("c2", email("x")); }).has_value();
        }
    });
    EXPECT_TRUE(others);
    ASSERT_FALSE(mine);
    EXPECT_EQ(mine.error().code, "not_unique");
    EXPECT_EQ(found("x"), "c2");
}

TEST_P(IndexesTest, refuse_a_value_that_is_too_long_by_its_fields_name) {
    ASSERT_TRUE(put("c1", email(std::string(1000, 'x'))));
    try {
        static_cast<void>(put("c2", email("e", std::string(1100, 'x'))));
        FAIL();
    } catch (const InvalidError& error) {
        EXPECT_NE(std::string{error.what()}.find("customers.city"), std::string::npos) << error.what();
    }
}

TEST_P(IndexesTest, follow_all_rows_of_a_body_that_had_to_mend_one) {
    ASSERT_TRUE(put("c1", email("x")));
    ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
        const auto rows = tx.rows<Customer>();
        rows.put("c1", email("y"));
        rows.put("c2", email(std::string(1100, 'x')));
        rows.put("c3", email("z"));
        EXPECT_THROW((void)rows.find<&Customer::email>("y"), InvalidError);
        rows.put("c2", email("x"));
        EXPECT_EQ(rows.find<&Customer::email>("x")->key.partition, "c2");
        rows.erase("c3");
    }));
    world_.later.drain();
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
}

/// As a program has written it that keeps no indexes.
struct Plain {
    static constexpr std::string_view table = "customers";
    std::string email;
    std::string city;
};

TEST_P(IndexesTest, let_a_row_be_mended_and_erased_that_could_not_be_indexed) {
    Application old{inner_, options()};
    const auto put_old = [&](const char* key, const Plain& row) {
        ASSERT_TRUE(old.transact([&](Transaction& tx) { tx.rows<Plain>().put(key, row); }));
        world_.later.drain();
    };
    const auto damage = [&](const char* key) {
        const store::Write write{{.table = "customers", .partition = key}, store::Update{{{"data", "no json"}}, {}}};
        ASSERT_TRUE(std::holds_alternative<store::Applied>(inner_->write({&write, 1}).front()));
    };
    const std::string too_long(1100, 'x');
    for (const char* key : {"c1", "c2"}) put_old(key, {key, too_long});
    for (const char* key : {"c3", "c4", "c5"}) put_old(key, {key, "Oslo"});
    for (const char* key : {"c3", "c4"}) damage(key);
    ASSERT_TRUE(put("c1", email("c1", "Bergen")));
    ASSERT_TRUE(put("c3", email("c3", "Bergen")));
    ASSERT_TRUE(shop_.transact([](Transaction& tx) {
        for (const char* key : {"c2", "c4"}) tx.rows<Customer>().erase(key);
    }));
    ASSERT_TRUE(put("c5", email("mine", "Bergen")));
    world_.later.drain();
    damage("c5");
    ASSERT_TRUE(put("c6", email("mine"))) << "nobody can tell that it is another row's";
    ASSERT_TRUE(shop_.transact([](Transaction& tx) { tx.rows<Customer>().erase("c5"); }));
    EXPECT_GT(shop_.build_indexes<Customer>(OldPrograms::have_ended), 0u);
    world_.later.drain();
    EXPECT_EQ(found("c1") + found("c3") + found("mine"), "c1c3c6");
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
}

TEST_P(IndexesTest, end_no_command_because_one_answer_was_lost) {
    ASSERT_TRUE(put("c1", email("a")));
    for (int lost = 1, reads = 0; lost == 1 || reads >= lost; ++lost) {
        world_.clock.advance(std::chrono::hours{1});  // it looks at the indexes again
        reads = 0;
        store_->before_read = [&] {
            if (++reads == lost) throw UnavailableError("the answer was lost");
        };
        ASSERT_TRUE(shop_.transact([&](Transaction& tx) {
            tx.rows<Customer>().put("c1", email("a", "town " + std::to_string(lost)));
            EXPECT_TRUE(tx.rows<Customer>().find<&Customer::email>("a"));
        })) << lost;
        store_->before_read = [] {};
        world_.later.drain();
    }
}

TEST_P(IndexesTest, cost_writes_only_for_entries_that_change) {
    const auto counting = std::make_shared<testing::CountingStore>(inner_);
    Application shop{counting, options()};
    const auto writes_of = [&](const Customer& customer) {
        counting->reset();
        EXPECT_TRUE(shop.transact([&](Transaction& tx) { tx.rows<Customer>().put("c1", customer); }));
        world_.later.drain();
        return counting->counts().writes;
    };
    const bool native = GetParam() == Strategy::automatic;
    writes_of(email("x"));
    Customer same = email("x");
    same.note = "changed";
    EXPECT_EQ(writes_of(same), 1u) << "the row alone";
    same.city = "Bergen";
    // The row, the old entry and the new one. By the protocol each is prepared and finalised, and the transaction has a
    // slot of its own.
    EXPECT_EQ(writes_of(same), native ? 3u : 7u);
}

// ---- by projections

struct OwnedBalance {
    static constexpr std::string_view table = "owned_balances";
    std::int64_t cents = 0;
    using Indexes = varve::Indexes<Index<&OwnedBalance::cents>>;
};
struct KeepOwned {
    using OwnRows = OwnedBalance;
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<OwnedBalance>().update(context.aggregate_id(), [&](OwnedBalance& row) { row.cents += e.cents; });
    }
};

TEST_P(IndexesTest, are_kept_by_inline_projections) {
    shop_.project<Account>(KeepOwned{});
    for (const char* id : {"alice", "bob"}) ASSERT_TRUE(shop_.execute<Account>(id, Deposit{500}));
    ASSERT_TRUE(shop_.execute<Account>("bob", Deposit{200}));
    world_.later.drain();
    const auto with = [&](std::int64_t cents) {
        return keys(shop_.rows<OwnedBalance>().where<&OwnedBalance::cents>(cents).to_vector());
    };
    EXPECT_EQ(with(500), (Keys{"alice"}));
    EXPECT_EQ(with(700), (Keys{"bob"}));
    EXPECT_EQ(shop_.refold<Account>("bob"), 0u);
    world_.later.drain();
    EXPECT_EQ(with(700), (Keys{"bob"}));
    EXPECT_EQ(shop_.build_indexes<OwnedBalance>(), 0u);
}

struct FollowedBalance {
    static constexpr std::string_view table = "followed";
    std::int64_t cents = 0;
    using Indexes = varve::Indexes<Index<&FollowedBalance::cents>>;
};
struct KeepFollowed {
    static constexpr std::string_view name = "followed";
    void operator()(const Deposited& e, ProjectionContext& context) const {
        context.rows<FollowedBalance>().update(context.aggregate_id(),
                                               [&](FollowedBalance& row) { row.cents += e.cents; });
    }
};

TEST(FollowersAndIndexes, a_followers_rows_are_found_by_their_fields) {
    for (const bool keeps_order : {true, false}) {
        std::shared_ptr<store::ItemStore> store = open("memory:");
        if (!keeps_order) store = std::make_shared<UnorderedStore>(store);
        Application shop{store};
        shop.follow<Account>(KeepFollowed{});
        for (const char* id : {"alice", "bob"}) ASSERT_TRUE(shop.execute<Account>(id, Deposit{500}));
        ASSERT_TRUE(shop.execute<Account>("bob", Deposit{200}));
        ASSERT_TRUE(shop.wait_for<KeepFollowed>({}, std::chrono::minutes{1}));
        const auto with = [&](std::int64_t cents) {
            return keys(shop.rows<FollowedBalance>().where<&FollowedBalance::cents>(cents).to_vector());
        };
        EXPECT_EQ(with(500), (Keys{"alice"}));
        EXPECT_EQ(with(700), (Keys{"bob"}));
    }
}

// ---- building

namespace before {
struct Customer {
    static constexpr std::string_view table = "customers";
    std::string email;
    std::string city;
};
}  // namespace before
namespace before {
struct Article {
    static constexpr std::string_view table = "articles";
    std::string code;
    using Indexes = varve::Indexes<Unique<&Article::code>>;
};
}  // namespace before
namespace changed {
struct Article {
    static constexpr std::string_view table = "articles";
    std::string code;
    using Indexes = varve::Indexes<Index<&Article::code>>;
};
}  // namespace changed
namespace without {
struct Article {
    static constexpr std::string_view table = "articles";
    std::string code;
};
}  // namespace without

std::string why_refused(const std::function<void()>& act) {
    try {
        act();
        return "";
    } catch (const ConfigError& error) {
        return error.what();
    }
}

struct IndexBuildTest : IndexesTest {
    Application old_{store_, options()};

    void put_old(const std::string& key, const std::string& email, Application* by = nullptr) {
        ASSERT_TRUE((by != nullptr ? *by : old_).transact([&](Transaction& tx) {
            tx.rows<before::Customer>().put(key, {email, "Oslo"});
        }));
        world_.later.drain();
    }
};

INSTANTIATE_TEST_SUITE_P(Strategies, IndexBuildTest, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

TEST_P(IndexBuildTest, makes_indexes_of_rows_that_are_there_whole) {
    for (int i = 0; i < 120; ++i) put_old("c" + std::to_string(i), "e" + std::to_string(i));
    EXPECT_NE(why_refused([&] { found("e7"); }).find("customers.email"), std::string::npos);
    EXPECT_NE(why_refused([&] { found("e7"); }).find("build_indexes"), std::string::npos);
    ASSERT_TRUE(put("c7", email("new"))) << "writers go on, and keep it";
    put_old("c8", "old");
    const SteadyTime began = world_.clock.steady_now();
    EXPECT_GT(shop_.build_indexes<Customer>(), 200u);
    EXPECT_GE(world_.clock.steady_now() - began, std::chrono::hours{1}) << "old programs may still run";
    world_.later.drain();
    EXPECT_EQ(found("new") + found("old") + found("e9"), "c7c8c9");
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
    EXPECT_EQ(shop_.build_indexes<Customer>(), 0u) << "all is right";
}

TEST_P(IndexBuildTest, refuses_old_programs_that_would_write_rows_without_entries) {
    put_old("c1", "a");
    ASSERT_TRUE(put("c2", email("b")));
    EXPECT_EQ(why_refused([&] { put_old("c1", "a2"); }), "") << "nobody asks for the index yet";
    shop_.build_indexes<Customer>();
    const std::string why = why_refused([&] { put_old("c1", "a3"); });
    EXPECT_NE(why.find("customers."), std::string::npos) << why;
    EXPECT_NE(why.find("before::Customer"), std::string::npos) << why;
    EXPECT_EQ(old_.rows<before::Customer>().get("c1")->email, "a2") << "it may read";
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
    Application fresh{store_, options()};
    EXPECT_NE(why_refused([&] { put_old("c9", "z", &fresh); }), "") << "however new it is";
}

TEST_P(IndexBuildTest, mends_what_an_old_program_has_written_meanwhile) {
    put_old("c1", "a");
    ASSERT_TRUE(put("c1", email("b")));
    put_old("c1", "c");
    put_old("c2", "b");
    shop_.build_indexes<Customer>(OldPrograms::have_ended);
    world_.later.drain();
    EXPECT_EQ(found("a") + found("b") + found("c"), "c2c1");
    EXPECT_EQ(entries_stored(*inner_), entries_expected(shop_));
}

TEST_P(IndexBuildTest, names_two_rows_that_have_one_unique_value) {
    put_old("c1", "same");
    put_old("c2", "same");
    const std::string why = why_refused([&] { shop_.build_indexes<Customer>(OldPrograms::have_ended); });
    for (const char* part : {"customers.email", "customers/c1", "customers/c2"})
        EXPECT_NE(why.find(part), std::string::npos) << why;
    EXPECT_NE(why_refused([&] { found("same"); }), "") << "it is not whole";
    ASSERT_TRUE(put("c2", email("another")));
    shop_.build_indexes<Customer>(OldPrograms::have_ended);
    EXPECT_EQ(found("same") + found("another"), "c1c2");
}

TEST_P(IndexBuildTest, refuses_an_index_of_another_form_until_it_is_built_anew) {
    ASSERT_TRUE(shop_.transact([](Transaction& tx) { tx.rows<before::Article>().put("a1", {"x"}); }));
    Application later{store_, options()};
    const auto put_changed = [&] {
        static_cast<void>(later.transact([](Transaction& tx) { tx.rows<changed::Article>().put("a2", {"x"}); }));
    };
    const auto found_changed = [&] {
        return keys(later.rows<changed::Article>().where<&changed::Article::code>("x").to_vector());
    };
    const std::string why = why_refused(put_changed);
    for (const char* part : {"articles.code", "unique text", "declares it text", "build_indexes"})
        EXPECT_NE(why.find(part), std::string::npos) << why;
    EXPECT_NE(why_refused([&] { static_cast<void>(found_changed()); }), "");
    later.build_indexes<changed::Article>(OldPrograms::have_ended);
    put_changed();
    world_.later.drain();
    EXPECT_EQ(found_changed(), (Keys{"a1", "a2"}));
    EXPECT_EQ(later.build_indexes<changed::Article>(), 0u);

    world_.clock.advance(std::chrono::hours{1});
    const auto put_before = [](Transaction& tx) { tx.rows<before::Article>().put("a3", {"y"}); };
    EXPECT_NE(why_refused([&] { static_cast<void>(shop_.transact(put_before)); }), "") << "now it is the other one";
}

TEST_P(IndexBuildTest, drops_what_is_declared_no_longer) {
    ASSERT_TRUE(put("c1", email("a")));
    Application later{store_, options()};
    EXPECT_NE(why_refused([&] { put_old("c2", "a", &later); }), "");
    EXPECT_GT(later.build_indexes<before::Customer>(OldPrograms::have_ended), 0u);
    put_old("c2", "a", &later);
    world_.later.drain();
    EXPECT_EQ(entries_stored(*inner_), Entries{});
    world_.clock.advance(std::chrono::hours{1});
    EXPECT_NE(why_refused([&] { found("a"); }), "") << "added again, it is built again";
}

/// A program that builds while others do, too.
struct IndexBuildsTest : IndexBuildTest {
    Application unique_{inner_, options()};  // with before::Article
    Application index_{inner_, options()};   // with changed::Article
    Application none_{inner_, options()};    // with without::Article

    IndexBuildsTest() {
        for (int i = 0; i < 120; ++i) put_article(i);
    }
    void put_article(int i) {
        const std::string name = std::to_string(1000 + i);
        EXPECT_TRUE(none_.transact([&](Transaction& tx) { tx.rows<without::Article>().put(name, {name}); }));
        world_.later.drain();
    }
    /// When the program with the hooked store has written what indexes there are for the `nth` time from now.
    void when_it_has_changed_the_catalogue(int nth, const std::function<void()>& act) {
        store_->after_write = [this, act, left = nth](std::span<const store::Write> writes, auto&) mutable {
            if (writes.front().key != store::Key{"varve", "rows articles"} || --left != 0) return;
            const std::function<void()> once = act;
            store_->after_write = [](auto, auto&) {};
            once();
        };
    }
    /// When it has read the `nth` page of entries from now.
    void when_it_has_read_entries(int nth, const std::function<void()>& act) {
        store_->after_query = [this, act, left = nth](const store::Page& page) mutable {
            if (page.records.empty() || page.records.front().key.table != "indexes" || --left != 0) return;
            const std::function<void()> once = act;
            store_->after_query = [](auto&) {};
            once();
        };
    }
    std::size_t entries() {
        std::size_t count = 0;
        store::Query query{.table = "indexes", .partition = "articles/code"};
        do {
            store::Page page = inner_->query(query);
            for (const auto& [key, item] : page.records) count += store::text(item, "data") != nullptr ? 1 : 0;
            query.next = page.next;
        } while (query.next);
        return count;
    }
};

INSTANTIATE_TEST_SUITE_P(Strategies, IndexBuildsTest, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::automatic ? "native" : "protocol"; });

TEST_P(IndexBuildsTest, of_different_structs_leave_the_last_ones_index_whole_and_refuse_the_other) {
    when_it_has_changed_the_catalogue(1, [&] { index_.build_indexes<changed::Article>(OldPrograms::have_ended); });
    const std::string why = why_refused([&] { shop_.build_indexes<before::Article>(); });
    for (const char* part : {"'articles'", "before::Article", "build_indexes"})
        EXPECT_NE(why.find(part), std::string::npos) << why;
    EXPECT_EQ(keys(index_.rows<changed::Article>().where<&changed::Article::code>("1007").to_vector()), (Keys{"1007"}));
    EXPECT_EQ(index_.build_indexes<changed::Article>(), 0u);
}

TEST_P(IndexBuildsTest, of_one_struct_may_run_at_once) {
    when_it_has_changed_the_catalogue(1, [&] { EXPECT_EQ(unique_.build_indexes<before::Article>(), 120u); });
    EXPECT_EQ(shop_.build_indexes<before::Article>(), 0u);
    EXPECT_EQ(entries(), 120u);
    Application another{inner_, options()};
    when_it_has_read_entries(2, [&] { another.build_indexes<without::Article>(OldPrograms::have_ended); });
    Application dropping{store_, options()};
    dropping.build_indexes<without::Article>(OldPrograms::have_ended);
    world_.later.drain();
    EXPECT_EQ(entries(), 0u);
    put_article(500);
}

TEST_P(IndexBuildsTest, leave_an_index_alone_that_is_added_again_while_they_drop_it) {
    unique_.build_indexes<before::Article>(OldPrograms::have_ended);
    Application dropping{store_, options()};
    when_it_has_read_entries(2, [&] { unique_.build_indexes<before::Article>(OldPrograms::have_ended); });
    const std::string why = why_refused([&] { dropping.build_indexes<without::Article>(OldPrograms::have_ended); });
    EXPECT_NE(why.find("without::Article"), std::string::npos) << why;
    EXPECT_EQ(entries(), 120u);
    EXPECT_EQ(unique_.rows<before::Article>().find<&before::Article::code>("1070")->key.partition, "1070");
}

TEST_P(IndexBuildsTest, that_die_while_they_drop_one_are_begun_again) {
    unique_.build_indexes<before::Article>(OldPrograms::have_ended);
    Application dropping{store_, options()};
    when_it_has_read_entries(2, [] { throw UnavailableError("it dies here"); });
    EXPECT_THROW(dropping.build_indexes<without::Article>(OldPrograms::have_ended), UnavailableError);
    world_.later.drain();
    EXPECT_GT(entries(), 0u);
    world_.clock.advance(std::chrono::hours{1});
    EXPECT_NE(why_refused([&] { put_article(500); }), "") << "it is not dropped yet";
    EXPECT_GT(dropping.build_indexes<without::Article>(OldPrograms::have_ended), 0u);
    world_.later.drain();
    EXPECT_EQ(entries(), 0u);
    put_article(500);
}

TEST_P(IndexBuildsTest, are_not_said_to_be_done_by_a_late_request_of_an_earlier_one) {
    std::optional<store::Write> last;
    store_->after_write = [&](std::span<const store::Write> writes, auto&) {
        if (writes.front().key.table == "varve") last = writes.front();
    };
    shop_.build_indexes<before::Article>(OldPrograms::have_ended);
    store_->after_write = [](auto, auto&) {};
    none_.build_indexes<without::Article>(OldPrograms::have_ended);
    world_.clock.advance(std::chrono::minutes{1});
    when_it_has_changed_the_catalogue(1, [] { throw UnavailableError("it dies here"); });
    EXPECT_THROW(shop_.build_indexes<before::Article>(OldPrograms::have_ended), UnavailableError);
    ASSERT_TRUE(last);
    static_cast<void>(inner_->write({&*last, 1}));
    Application reader{inner_, options()};
    EXPECT_NE(
        why_refused([&] { static_cast<void>(reader.rows<before::Article>().find<&before::Article::code>("1007")); }),
        "");
}

TEST_P(IndexBuildTest, is_learnt_of_by_a_machine_that_was_suspended) {
    for (const Duration set : {Duration{std::chrono::hours{1}}, Duration{-std::chrono::hours{1}}}) {
        Application suspended{store_, options()};
        Application changing{store_, options()};
        const auto write = [](Transaction& tx) { tx.rows<before::Article>().put("a1", {"x"}); };
        suspended.build_indexes<before::Article>(OldPrograms::have_ended);
        ASSERT_TRUE(suspended.transact(write));
        changing.build_indexes<changed::Article>(OldPrograms::have_ended);
        EXPECT_EQ(why_refused([&] { static_cast<void>(suspended.transact(write)); }), "") << "it does not know yet";
        world_.clock.jump(set);
        EXPECT_NE(why_refused([&] { static_cast<void>(suspended.transact(write)); }), "")
            << "its steady clock stood still";
        world_.clock.jump(-set);
    }
}

TEST_P(IndexBuildTest, inside_a_transaction_is_refused_at_once) {
    put_old("c1", "a");
    static_cast<void>(shop_.rows<Customer>());
    const SteadyTime began = world_.clock.steady_now();
    EXPECT_THROW(static_cast<void>(shop_.transact([&](Transaction&) { shop_.build_indexes<Customer>(); })),
                 InvalidError);
    EXPECT_EQ(world_.clock.steady_now(), began);
    put_old("c2", "b");
}

// ---- under faults

using testing::RequestInfo;

void put(Transaction& tx, const char* key, const char* email, const char* city) {
    tx.rows<Customer>().put(key, {.email = email, .city = city, .voucher = {}, .note = {}});
}

/// A program that dies at its n-th request, before or after it takes effect, while it swaps two unique values, changes
/// a city and inserts a row; then another one recovers. False if it got through.
bool dies_and_is_right(Strategy strategy, std::uint64_t at, RequestInfo::Moment moment) {
    const std::shared_ptr<store::ItemStore> inner = open("memory:");
    testing::ManualWorld world;
    testing::SeededRandom random{1};
    testing::Network network{{world.clock, random}};
    Application heir{inner, world.options()};
    EXPECT_TRUE(heir.transact([](Transaction& tx) {
        put(tx, "c1", "x", "Oslo");
        put(tx, "c2", "y", "Oslo");
    }));
    world.later.drain();
    bool died = false;
    {
        const auto store = std::make_shared<testing::FaultyStore>(inner, network);
        std::uint64_t begun = 0;
        store->on_request([&](const RequestInfo& info) {
            if (begun == 0 || info.number != begun + at || info.moment != moment) return testing::Next::proceed;
            died = true;
            return testing::Next::stop;
        });
        Application victim{store, world.options({.transactions = {.strategy = strategy}})};
        static_cast<void>(victim.rows<Customer>());
        begun = store->requests();
        try {
            static_cast<void>(victim.transact([](Transaction& tx) {
                put(tx, "c1", "y", "Bergen");
                put(tx, "c2", "x", "Oslo");
                put(tx, "c3", "z", "Oslo");
            }));
            world.later.drain();
        } catch (const testing::ProcessStopped&) {
            world.later.forget();
        }
        begun = 0;
    }
    world.clock.advance(std::chrono::minutes{1});
    EXPECT_TRUE(heir.settle(std::chrono::minutes{1}));
    world.later.drain();
    EXPECT_EQ(entries_stored(*inner), entries_expected(heir));
    const auto x = heir.rows<Customer>().find<&Customer::email>("x");
    EXPECT_TRUE(x && (x->key.partition == "c2") == heir.rows<Customer>().get("c3").has_value()) << "all or nothing";
    EXPECT_EQ(heir.build_indexes<Customer>(), 0u);
    return died;
}

TEST(IndexesUnderFaults, are_right_after_a_crash_at_each_request) {
    for (const Strategy strategy : {Strategy::automatic, Strategy::protocol}) {
        for (const RequestInfo::Moment moment : {RequestInfo::Moment::before, RequestInfo::Moment::after}) {
            std::uint64_t at = 1;
            for (;; ++at) {
                SCOPED_TRACE("request " + std::to_string(at));
                if (!dies_and_is_right(strategy, at, moment)) break;
            }
            EXPECT_GT(at, strategy == Strategy::automatic ? 2u : 15u) << "it died often enough";
        }
    }
}

/// Random changes of a few rows that want the same few values, swaps among them.
void change_at_random(Application& shop, std::uint32_t seed, int times) {
    std::mt19937 random{seed};
    const auto below = [&](std::uint32_t n) { return std::to_string(random() % n); };
    for (int i = 0; i < times; ++i) {
        const std::string a = "c" + below(8), b = "c" + below(8), email = "e" + below(6), city = "t" + below(2);
        const std::uint32_t what = random() % 4;
        try {
            static_cast<void>(shop.transact([&](Transaction& tx) {
                const auto rows = tx.rows<Customer>();
                if (what == 0) {
                    rows.erase(a);
                } else if (what == 1) {
                    auto one = rows.get(a), two = rows.get(b);
                    if (!one || !two || a == b) return;
                    std::swap(one->email, two->email);
                    rows.put(a, *one);
                    rows.put(b, *two);
                } else if (const auto owner = rows.find<&Customer::email>(email); owner && what == 2) {
                    rows.erase(owner->key);
                    rows.put(a, {.email = email, .city = city, .voucher = {}, .note = {}});
                } else {
                    rows.put(a, {.email = email, .city = city, .voucher = {}, .note = {}});
                }
            }));
            for (const auto& row : shop.rows<Customer>().where<&Customer::city>(city)) EXPECT_EQ(row.value.city, city);
            const auto found = shop.rows<Customer>().find<&Customer::email>(email);
            EXPECT_TRUE(!found || found->value.email == email);
        } catch (const Error& error) {
            EXPECT_TRUE(error.retryable() || error.in_doubt()) << error.what();
        }
    }
}

TEST(IndexesUnderFaults, agree_with_the_rows_when_threads_of_two_programs_contend) {
    for (const Strategy strategy : {Strategy::automatic, Strategy::protocol}) {
        const std::shared_ptr<store::ItemStore> store = open("memory:");
        {
            Application one{store, {.transactions = {.strategy = strategy}}};
            Application two{store, {.transactions = {.strategy = strategy}}};
            std::vector<std::jthread> threads;
            for (std::uint32_t i = 0; i < 4; ++i)
                threads.emplace_back([&, i] { change_at_random(i % 2 == 0 ? one : two, i, 60); });
        }
        Application last{store};
        ASSERT_TRUE(last.settle(std::chrono::seconds{20}));
        EXPECT_EQ(entries_stored(*store), entries_expected(last));
        EXPECT_EQ(last.build_indexes<Customer>(), 0u);
    }
}

TEST(IndexesUnderFaults, agree_with_the_rows_when_requests_and_answers_are_lost_late_or_repeated) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const std::shared_ptr<store::ItemStore> inner = open("memory:");
        testing::ManualWorld world;
        testing::SeededRandom random{seed};
        testing::Network network{{world.clock, random}};
        const auto faulty = std::make_shared<testing::FaultyStore>(inner, network);
        const Strategy strategy = seed % 2 == 0 ? Strategy::automatic : Strategy::protocol;
        {
            Application shop{faulty, world.options({.transactions = {.strategy = strategy}})};
            network.set_rates({.request_lost = 0.02,
                               .answer_lost = 0.03,
                               .request_late = 0.02,
                               .delivered_again = 0.05,
                               .small_page = 0.1});
            change_at_random(shop, static_cast<std::uint32_t>(seed), 60);
            world.later.drain();
        }
        world.clock.advance(std::chrono::minutes{10});
        network.set_rates({});
        network.deliver_everything();
        Application last{inner, world.options()};
        static_cast<void>(last.rows<Customer>());
        ASSERT_TRUE(last.settle(std::chrono::minutes{1}));
        world.later.drain();
        EXPECT_EQ(entries_stored(*inner), entries_expected(last));
    }
}

}  // namespace
}  // namespace varve
