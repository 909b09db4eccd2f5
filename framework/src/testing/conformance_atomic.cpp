#include "testing/conformance.h"

#include <varve/core/error.h>

#include <atomic>

namespace varve::testing::detail {
namespace {

/// Throws CaseSkipped unless the store writes at least `count` items atomically.
void need_atomic(ItemStore& store, std::size_t count = 4) {
    const std::size_t most = store.capabilities().atomic_writes_max;
    if (most < count) throw CaseSkipped("the store writes at most " + std::to_string(most) + " items atomically");
}

bool all_applied(const AtomicAnswer& answer) {
    return std::holds_alternative<Applied>(answer);
}

}  // namespace

void add_atomic_cases(Cases& cases) {
    cases.add("an_atomic_batch_is_applied_if_all_its_conditions_hold", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        ensure_all(store);
        put(store, number("a", 1), {{"x", 1}});
        put(store, word("a", "old"));
        const std::vector<Write> writes{
            {.key = plain("new"), .action = Put{{{"x", 1}}}, .condition = !item_exists()},
            {.key = number("a", 1), .action = Update{{{"y", 2}}, {}}, .condition = equals("x", 1)},
            {.key = word("a", "old"), .action = Erase{}},
            {.key = plain("unchanged"), .action = Check{}, .condition = !item_exists()}};
        require(all_applied(store.write_atomically(writes)), "the batch was not applied");
        require_equal(read_one(store, plain("new")), {Item{{"x", 1}}}, "the new item");
        require_equal(read_one(store, number("a", 1)), {Item{{"x", 1}, {"y", 2}}}, "the updated item");
        require_equal(read_one(store, word("a", "old")), std::optional<Item>{}, "the erased item");
        require_equal(read_one(store, plain("unchanged")), std::optional<Item>{}, "the checked item");
    });

    cases.add("an_atomic_batch_with_a_refusal_changes_nothing_and_names_every_refusal", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        ensure_all(store);
        put(store, plain("taken"), {{"by", "me"}});
        const std::vector<Write> writes{{.key = plain("free"), .action = Put{}, .condition = !item_exists()},
                                        {.key = plain("taken"), .action = Put{}, .condition = !item_exists()},
                                        {.key = number("p", 1), .action = Put{}},
                                        {.key = number("p", 2), .action = Check{}, .condition = item_exists()}};
        const AtomicAnswer answer = store.write_atomically(writes);
        const auto* refusal = std::get_if<RefusedBatch>(&answer);
        require(refusal != nullptr, "the batch was not refused");
        require_equal(refusal->refused.size(), std::size_t{2}, "refusals");
        require_equal(refusal->refused[0].index, std::size_t{1}, "the first refusal's index");
        require_equal(refusal->refused[0].current, {Item{{"by", "me"}}}, "the first refusal's item");
        require_equal(refusal->refused[1].index, std::size_t{3}, "the second refusal's index");
        require_equal(refusal->refused[1].current, std::optional<Item>{}, "the second refusal's item");
        require_equal(read_one(store, plain("free")), std::optional<Item>{}, "an item of the refused batch");
        require_equal(read_one(store, number("p", 1)), std::optional<Item>{}, "an item of the refused batch");
    });

    cases.add("an_invalid_atomic_batch_is_not_applied", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        ensure_all(store);
        const auto refuse = [&](const std::vector<Write>& writes, const std::string& what) {
            require_throws<InvalidError>([&] { (void)store.write_atomically(writes); }, what);
            require_equal(scan_all(store, {.table = "plain"}), {}, "what was written beside " + what);
        };
        const Write good{.key = plain("good"), .action = Put{}};
        refuse({good, good}, "a key named twice");
        refuse({good, {.key = plain("good"), .action = Check{}}}, "a key both written and checked");
        refuse({good, {.key = plain("a"), .action = Update{{{"both", 1}}, {"both"}}}}, "an attribute set and removed");
        refuse({good, {.key = number("a", 1), .action = Put{{{"n", 1}}}}}, "a write of a key attribute");
        refuse({good, {.key = {.table = "nowhere", .partition = "a"}, .action = Put{}}}, "an unknown table");
    });

    cases.add("an_atomic_batch_takes_as_many_writes_as_the_store_says", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        ensure_all(store);
        const std::size_t most = store.capabilities().atomic_writes_max;
        if (most > 2000) throw CaseSkipped("batches of more than 2000 are not tried");
        std::vector<Write> writes;
        for (std::size_t i = 0; i < most; ++i) {
            writes.push_back({.key = number("p", static_cast<std::int64_t>(i)), .action = Put{}});
        }
        require(all_applied(store.write_atomically(writes)), "the largest batch was not applied");
        require_equal(query_all(store, {.table = "numbers", .partition = "p"}).size(), most, "items");
        for (Write& one : writes) one.action = Erase{};
        writes.push_back({.key = plain("one_more"), .action = Put{}});
        require_mentions(require_throws<InvalidError>([&] { (void)store.write_atomically(writes); }, "a larger batch"),
                         std::to_string(most));
        require_equal(query_all(store, {.table = "numbers", .partition = "p"}).size(), most, "items left");
    });

    cases.add("what_an_atomic_batch_writes_is_a_change_and_a_check_is_none", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        if (!store.capabilities().ordered_changes) throw CaseSkipped("the store keeps no order of changes");
        ensure_all(store);
        put(store, plain("checked"));
        const std::vector<Write> writes{{.key = plain("checked"), .action = Check{}, .condition = item_exists()},
                                        {.key = plain("a"), .action = Put{}},
                                        {.key = plain("b"), .action = Put{}}};
        require(all_applied(store.write_atomically(writes)), "the batch was not applied");
        const auto changes = store.changes("plain", 1, 10);
        require_equal(changes.size(), std::size_t{2}, "changes");
        require_equal(changes[0].position, Position{2}, "the position of the first");
        require_equal(changes[1].position, Position{3}, "the position of the second");
    });

    cases.add("what_an_atomic_batch_writes_gets_positions_in_its_order", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        if (!store.capabilities().ordered_changes) throw CaseSkipped("the store keeps no order of changes");
        ensure_all(store);
        put(store, plain("m"));
        std::vector<Write> writes;
        std::string expected;
        for (const char* name : {"z", "a", "m", "k", "b", "y"}) {
            if (writes.size() + 2 > store.capabilities().atomic_writes_max) break;
            expected += name;
            writes.push_back({.key = plain(name), .action = Put{{{"by", "me"}}}});
            writes.push_back({.key = number(name, 1), .action = Put{}});
        }
        require(all_applied(store.write_atomically(writes)), "the batch was not applied");
        std::string found;
        for (const Change& change : store.changes("plain", 1, 10)) found += change.record.key.partition;
        require(found == expected, "the order of changes: got " + found + ", expected " + expected);
        found.clear();
        for (const Change& change : store.changes("numbers", 0, 10)) found += change.record.key.partition;
        require(found == expected, "the order of changes in the other table: got " + found + ", expected " + expected);
    });

    cases.add("atomic_transfers_keep_the_sum_at_every_moment", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store);
        ensure_all(store);
        constexpr int accounts = 4;
        constexpr std::int64_t each = 100;
        constexpr int transfers = 20;
        std::vector<Key> keys;
        for (int i = 0; i < accounts; ++i) {
            keys.push_back(number("p" + std::to_string(i % 2), i));
            put(store, keys.back(), {{"balance", each}});
        }
        const auto balance = [](const std::optional<Item>& item) {
            const std::int64_t* found = item ? integer(*item, "balance") : nullptr;
            require(found != nullptr, "an account without its balance");
            return *found;
        };
        std::atomic<int> sums_seen = 0;
        in_parallel(3, [&](std::size_t thread) {
            for (int done = 0, attempts = 0; done < transfers; ++attempts) {
                require(attempts < 20'000, "transfers do not get through");
                const auto items = store.read(keys);
                std::vector<Write> writes;
                std::int64_t sum = 0;
                for (std::size_t i = 0; i < keys.size(); ++i) {
                    sum += balance(items[i]);
                    writes.push_back(
                        {.key = keys[i], .action = Check{}, .condition = equals("balance", balance(items[i]))});
                }
                const auto from = static_cast<std::size_t>(done + attempts) % keys.size();
                const auto to = (from + 1 + thread) % keys.size();
                if (from != to) {
                    writes[from].action = Put{{{"balance", balance(items[from]) - 1}}};
                    writes[to].action = Put{{{"balance", balance(items[to]) + 1}}};
                }
                if (!all_applied(store.write_atomically(writes))) continue;
                // All four were of one moment, or the batch had been refused.
                require_equal(sum, each * accounts, "the sum of all balances");
                ++sums_seen;
                ++done;
            }
        });
        require_equal(sums_seen.load(), 3 * transfers, "transfers");
    });

    cases.add("who_has_seen_a_part_of_an_atomic_batch_sees_all_of_it", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        need_atomic(store, 2);
        ensure_all(store);
        const std::vector<Key> keys{plain("a"), number("b", 1)};
        constexpr std::int64_t rounds = 100;
        const auto write_both = [&](std::int64_t round) {
            std::vector<Write> writes;
            for (const Key& key : keys) writes.push_back({.key = key, .action = Put{{{"round", round}}}});
            require(all_applied(store.write_atomically(writes)), "a batch was not applied");
        };
        const auto round_of = [](const std::optional<Item>& item) {
            const std::int64_t* round = item ? integer(*item, "round") : nullptr;
            require(round != nullptr, "an item without its round");
            return *round;
        };
        write_both(0);
        std::atomic<bool> is_over = false;
        in_parallel(3, [&](std::size_t thread) {
            if (thread == 0) {
                for (std::int64_t round = 1; round <= rounds; ++round) write_both(round);
                is_over = true;
                return;
            }
            while (!is_over) {
                const Key& first = keys[thread - 1];
                const Key& second = keys[2 - thread];
                const std::int64_t seen = round_of(read_one(store, first));
                require(round_of(read_one(store, second)) >= seen, "a read sees a part of a batch");
            }
        });
    });

    cases.add("atomic_writes_that_are_not_there_are_invalid_to_ask_for", [](FreshStore& fresh) {
        if (fresh.store->capabilities().atomic_writes_max > 0) throw CaseSkipped("the store writes items atomically");
        ensure_all(*fresh.store);
        const Write write{.key = plain("a"), .action = Put{}};
        require_throws<InvalidError>([&] { (void)fresh.store->write_atomically({&write, 1}); }, "an atomic batch");
        require_equal(read_one(*fresh.store, plain("a")), std::optional<Item>{}, "the item");
    });
}

}  // namespace varve::testing::detail
