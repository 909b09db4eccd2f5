#include "support/account.h"

#include <varve/events/event_store.h>
#include <varve/operations/read_only.h>
#include <varve/store/item_store.h>

#include <gtest/gtest.h>

namespace varve::operations {

using namespace account;

namespace {

ApplicationOptions quiet() {
    ApplicationOptions options;
    options.sweep = false;
    return options;
}

template <class Work>
void expect_refused(const Work& work) {
    try {
        work();
        ADD_FAILURE() << "it was written";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::read_only) << error.what();
    }
}

TEST(ReadOnly, an_application_on_it_reads_and_each_write_is_refused) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store};
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    const store::Position before = store->last_change("events");

    Application reader{read_only(store), quiet()};
    EXPECT_EQ(reader.load<Account>("alice").state.balance, 5);
    EXPECT_EQ(reader.rows<Balance>().get("alice"), std::nullopt) << "a table that is missing reads as an empty one";
    expect_refused([&] { (void)reader.execute<Account>("alice", Deposit{1}); });
    expect_refused([&] {
        (void)reader.transact([](Transaction& tx) {
            tx.execute<Account>("alice", Deposit{1});
            tx.execute<Account>("bob", Deposit{1});
        });
    });
    EXPECT_EQ(store->last_change("events"), before);
    EXPECT_EQ(bank.load<Account>("alice").state.balance, 5);
    EXPECT_EQ(bank.load<Account>("bob").version, 0);
}

TEST(ReadOnly, a_table_that_others_make_later_is_seen) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store};
    Application reader{read_only(store), quiet()};
    const Rows<Balance> rows = reader.rows<Balance>();
    EXPECT_EQ(rows.get("alice"), std::nullopt);
    EXPECT_FALSE(store->has_table({.name = "balances", .partition_attribute = "key"})) << "reading has made a table";
    bank.transact([](Transaction& tx) { tx.rows<Balance>().put("alice", {.cents = 7}); }).value();
    EXPECT_EQ(rows.get("alice"), Balance{.cents = 7});
}

TEST(ReadOnly, a_store_that_varve_has_never_used_is_no_store_to_be_read) {
    const std::shared_ptr<store::ItemStore> store = open("memory:");
    EXPECT_THROW(read_only(store), ConfigError);
    EXPECT_THROW(read_only(nullptr), InvalidError);
    EXPECT_FALSE(store->has_table({.name = "varve", .partition_attribute = "name"}));
}

}  // namespace
}  // namespace varve::operations
