#include "testing/conformance.h"

#include <varve/core/error.h>

#include <atomic>
#include <memory>

namespace varve::testing::detail {

void add_table_cases(Cases& cases) {
    cases.add("ensuring_a_table_again_changes_nothing", [](FreshStore& fresh) {
        fresh.store->ensure_table(plain_table());
        put(*fresh.store, plain("a"), {{"x", 1}});
        fresh.store->ensure_table(plain_table());
        require_equal(read_one(*fresh.store, plain("a")), {Item{{"x", 1}}}, "the item from before");
    });

    cases.add("a_table_with_another_shape_is_a_config_error_that_names_both", [](FreshStore& fresh) {
        fresh.store->ensure_table(numbers_table());
        TableSchema other = numbers_table();
        other.sort_attribute = "position";
        const std::string message =
            require_throws<ConfigError>([&] { fresh.store->ensure_table(other); }, "another sort attribute");
        require_mentions(message, "numbers");
        require_mentions(message, "position");
        other = numbers_table();
        other.sort = SortType::text;
        require_throws<ConfigError>([&] { fresh.store->ensure_table(other); }, "another type of sort key");
        other = numbers_table();
        other.partition_attribute = "name";
        require_mentions(
            require_throws<ConfigError>([&] { fresh.store->ensure_table(other); }, "another partition key"), "name");
    });

    cases.add("a_table_is_looked_for_without_being_made", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        require_equal(store.has_table(numbers_table()), false, "whether it is there before it was made");
        require_equal(store.has_table(numbers_table()), false, "whether looking for it has made it");
        store.ensure_table(numbers_table());
        put(store, number("p", 1));
        require_equal(store.has_table(numbers_table()), true, "whether it is there");
        if (fresh.connect) {
            const std::shared_ptr<ItemStore> other = fresh.connect();
            require_equal(other->has_table(numbers_table()), true, "whether another handle finds it");
            require_equal(query_all(*other, {.table = "numbers", .partition = "p"}).size(), std::size_t{1},
                          "items read by who has only looked for their table");
        }
        TableSchema other_shape = numbers_table();
        other_shape.sort_attribute = "position";
        require_mentions(
            require_throws<ConfigError>([&] { (void)store.has_table(other_shape); }, "another sort attribute"),
            "numbers");
        require_throws<InvalidError>([&] { (void)store.has_table({.name = "ab", .partition_attribute = "id"}); },
                                     "a name that is too short");
    });

    cases.add("a_schema_that_breaks_a_rule_is_invalid", [](FreshStore& fresh) {
        const auto refuse = [&](const TableSchema& schema, const std::string& why) {
            require_throws<InvalidError>([&] { fresh.store->ensure_table(schema); }, why);
        };
        refuse({.name = "ab", .partition_attribute = "id"}, "a name that is too short");
        refuse({.name = "white space", .partition_attribute = "id"}, "a name with a space");
        refuse({.name = std::string(201, 'a'), .partition_attribute = "id"}, "a name that is too long");
        refuse({.name = "abc", .partition_attribute = ""}, "no partition attribute");
        refuse({.name = "abc", .partition_attribute = "id", .sort_attribute = "n"}, "a sort attribute without a type");
        refuse({.name = "abc", .partition_attribute = "id", .sort = SortType::text}, "a type without an attribute");
    });

    cases.add("tables_are_ensured_by_many_threads_at_once", [](FreshStore& fresh) {
        in_parallel(4, [&](std::size_t thread) {
            ensure_all(*fresh.store);
            put(*fresh.store, number("p", static_cast<std::int64_t>(thread)));
        });
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "p"}).size(), std::size_t{4},
                      "items written by the threads");
    });

    cases.add("a_table_that_nobody_ensured_is_invalid_and_named", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        ensure_all(store);
        const Key key{.table = "nowhere", .partition = "a"};
        const Write write{.key = key, .action = Put{}};
        require_mentions(require_throws<InvalidError>([&] { (void)store.read({&key, 1}); }, "read"), "nowhere");
        require_mentions(require_throws<InvalidError>([&] { (void)store.write({&write, 1}); }, "write"), "nowhere");
        require_mentions(
            require_throws<InvalidError>([&] { (void)store.query({.table = "nowhere", .partition = "a"}); }, "query"),
            "nowhere");
        require_mentions(require_throws<InvalidError>([&] { (void)store.scan({.table = "nowhere"}); }, "scan"),
                         "nowhere");
        if (store.capabilities().ordered_changes) {
            require_mentions(require_throws<InvalidError>([&] { (void)store.changes("nowhere", 0, 1); }, "changes"),
                             "nowhere");
        }
        if (store.capabilities().atomic_writes_max > 0) {
            require_mentions(require_throws<InvalidError>(
                                 [&] {
                                     (void)store.write_atomically({&write, 1});
                                 },
                                 "atomic write"),
                             "nowhere");
        }
    });

    cases.add("tables_keep_their_items_apart", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        fresh.store->ensure_table({.name = "plain2", .partition_attribute = "id"});
        put(*fresh.store, plain("a"), {{"x", 1}});
        put(*fresh.store, {.table = "plain2", .partition = "a"}, {{"x", 2}});
        require_equal(read_one(*fresh.store, plain("a")), {Item{{"x", 1}}}, "the item in one table");
        require_equal(scan_all(*fresh.store, {.table = "plain2"}).size(), std::size_t{1}, "items of the other table");
    });

    cases.add("an_expiry_attribute_is_an_attribute_like_others", [](FreshStore& fresh) {
        fresh.store->ensure_table(
            {.name = "leases", .partition_attribute = "id", .expiry_attribute = "expires_unix_seconds"});
        constexpr std::int64_t year_2100 = 4'102'444'800;
        const Key key{.table = "leases", .partition = "a"};
        put(*fresh.store, key, {{"expires_unix_seconds", year_2100}});
        put(*fresh.store, {.table = "leases", .partition = "b"}, {{"owner", "nobody"}});
        require_equal(read_one(*fresh.store, key), {Item{{"expires_unix_seconds", year_2100}}},
                      "an item that has not expired");
        require(applied(write_one(*fresh.store, {.key = key,
                                                 .action = Update{.set = {{"owner", "me"}}, .remove = {}},
                                                 .condition = equals("expires_unix_seconds", year_2100)})),
                "a condition on the expiry attribute does not hold");
    });

    cases.add("who_watches_a_table_is_called_when_another_handle_has_changed_it", [](FreshStore& fresh) {
        if (!fresh.connect) throw CaseSkipped("the store's data have one handle only");
        ensure_all(*fresh.store);
        const std::shared_ptr<ItemStore> other = fresh.connect();
        std::atomic<int> calls = 0;
        std::shared_ptr<void> watch = fresh.store->watch("plain", [&] { ++calls; });
        if (!watch) throw CaseSkipped("the store tells nobody of changes");
        constexpr int writes_max = 20'000;
        int writes = 0;
        for (int called = 0; called < 3 && writes < writes_max; ++writes) {  // one of them may be for nothing
            put(*other, plain("a"), {{"n", writes}});
            called = calls;
        }
        require(writes < writes_max, "somebody who watches was not called");
        watch.reset();
        const int before = calls;
        for (int i = 0; i < 100; ++i) put(*other, plain("a"), {{"n", i}});
        require_equal(calls.load(), before, "calls after the watch is gone");
    });

    cases.add("another_handle_sees_every_answered_write_at_once", [](FreshStore& fresh) {
        if (!fresh.connect) throw CaseSkipped("the store's data have one handle only");
        const std::shared_ptr<ItemStore> other = fresh.connect();
        ensure_all(*fresh.store);
        ensure_all(*other);
        for (int i = 0; i < 20; ++i) {
            ItemStore& writer = i % 2 == 0 ? *fresh.store : *other;
            ItemStore& reader = i % 2 == 0 ? *other : *fresh.store;
            put(writer, number("p", i), {{"i", i}});
            require_equal(read_one(reader, number("p", i)), {Item{{"i", i}}}, "the item read by the other handle");
            require_equal(query_all(reader, {.table = "numbers", .partition = "p"}).size(),
                          static_cast<std::size_t>(i + 1), "items queried by the other handle");
            require(refused(write_one(reader, {.key = number("p", i), .action = Put{}, .condition = !item_exists()})),
                    "the other handle could create what was there");
        }
    });
}

}  // namespace varve::testing::detail
