#include "testing/conformance.h"

#include <varve/core/error.h>

namespace varve::testing::detail {
namespace {

/// Larger limits would only test the machine's memory.
constexpr std::size_t tested_item_bytes_max = std::size_t{64} << 20;

std::size_t limit_for_test(ItemStore& store) {
    const std::size_t limit = store.capabilities().item_bytes_max;
    if (limit > tested_item_bytes_max) {
        throw CaseSkipped("items of more than " + std::to_string(tested_item_bytes_max) + " bytes are not tried");
    }
    return limit;
}

/// An item that counts exactly `size` under `key`.
Item item_of_size(const Key& key, std::size_t size) {
    Item item{{"x", ""}};
    item["x"] = std::string(size - bytes(key, item), 'x');
    return item;
}

void require_refused_by(const WriteAnswer& answer, const std::optional<Item>& current, const std::string& what) {
    require(refused(answer), what + " was " + to_text(answer));
    require_equal(std::get<Refused>(answer).current, current, "what refused " + what);
}

}  // namespace

void add_write_cases(Cases& cases) {
    cases.add("reads_are_answered_in_the_order_of_their_keys", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        put(*fresh.store, plain("a"), {{"x", 1}});
        put(*fresh.store, number("a", 7), {{"x", 2}});
        const std::vector<Key> keys{number("a", 7), plain("missing"), plain("a"), number("a", 7), number("a", 8)};
        const auto items = fresh.store->read(keys);
        require_equal(items.size(), keys.size(), "answers");
        const std::vector<std::optional<Item>> expected{Item{{"x", 2}}, std::nullopt, Item{{"x", 1}}, Item{{"x", 2}},
                                                        std::nullopt};
        for (std::size_t i = 0; i < keys.size(); ++i) require_equal(items[i], expected[i], to_string(keys[i]));
        require(fresh.store->read({}).empty(), "a read of no keys has answers");
    });

    cases.add("large_batches_are_answered_in_order", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        constexpr int count = 250;
        std::vector<Key> keys;
        std::vector<Write> writes;
        for (int i = 0; i < count; ++i) {
            keys.push_back(number(std::to_string(i % 7), i));
            if (i % 3 == 0) put(*fresh.store, keys.back(), {{"old", i}});
            writes.push_back({.key = keys.back(), .action = Put{{{"new", i}}}, .condition = !item_exists()});
        }
        const auto answers = fresh.store->write(writes);
        require_equal(answers.size(), writes.size(), "answers to the writes");
        const auto items = fresh.store->read(keys);
        require_equal(items.size(), keys.size(), "answers to the reads");
        for (int i = 0; i < count; ++i) {
            const auto index = static_cast<std::size_t>(i);
            const Item expected{{i % 3 == 0 ? "old" : "new", i}};
            if (i % 3 == 0) {
                require_refused_by(answers[index], expected, to_string(keys[index]));
            } else {
                require(applied(answers[index]), to_string(keys[index]) + " was " + to_text(answers[index]));
            }
            require_equal(items[index], {expected}, to_string(keys[index]));
        }
        require(fresh.store->write({}).empty(), "an empty batch has answers");
    });

    cases.add("put_replaces_the_whole_item", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        put(*fresh.store, plain("a"), {{"x", 1}, {"y", 2}});
        put(*fresh.store, plain("a"), {{"y", "two"}, {"z", 3}});
        require_equal(read_one(*fresh.store, plain("a")), {Item{{"y", "two"}, {"z", 3}}}, "the item");
    });

    cases.add("update_sets_some_attributes_removes_others_and_keeps_the_rest", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto update = [&](const Key& key, Item set, std::vector<std::string> remove) {
            require(applied(write_one(*fresh.store, {.key = key, .action = Update{std::move(set), std::move(remove)}})),
                    "an update without a condition was not applied");
            return read_one(*fresh.store, key);
        };
        put(*fresh.store, number("a", 1), {{"keep", 1}, {"change", 2}, {"drop", 3}});
        require_equal(update(number("a", 1), {{"change", "two"}, {"add", 4}}, {"drop", "never_there"}),
                      {Item{{"keep", 1}, {"change", "two"}, {"add", 4}}}, "the updated item");
        require_equal(update(number("a", 1), {}, {"keep", "change", "add"}), {Item{}},
                      "an item without its attributes");
        require_equal(update(number("a", 2), {{"x", 1}}, {"y"}), {Item{{"x", 1}}}, "an item that an update created");
    });

    cases.add("erase_removes_and_erasing_nothing_is_no_failure", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        put(*fresh.store, number("a", 1));
        put(*fresh.store, number("a", 2));
        erase(*fresh.store, number("a", 1));
        require_equal(read_one(*fresh.store, number("a", 1)), std::optional<Item>{}, "the erased item");
        erase(*fresh.store, number("a", 1));
        erase(*fresh.store, number("nowhere", 1));
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "a"}), {Record{number("a", 2), {}}},
                      "what is left");
        put(*fresh.store, number("a", 1), {{"x", 1}});
        require_equal(read_one(*fresh.store, number("a", 1)), {Item{{"x", 1}}}, "the item that was put again");
    });

    cases.add("a_refused_write_changes_nothing_and_brings_the_current_item", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const Item current{{"state", "open"}, {"epoch", 3}, {"image", Bytes{std::byte{0}, std::byte{255}}}};
        put(*fresh.store, plain("a"), current);
        const std::vector<decltype(Write::action)> actions{Put{{{"state", "closed"}}},
                                                           Update{{{"state", "closed"}}, {"epoch"}}, Erase{}};
        for (const auto& action : actions) {
            const Condition stale = equals("epoch", 2);
            require_refused_by(write_one(*fresh.store, {.key = plain("a"), .action = action, .condition = stale}),
                               current, "a stale write");
            require_equal(read_one(*fresh.store, plain("a")), {current}, "the item after a refused write");
            require_refused_by(write_one(*fresh.store, {.key = plain("b"), .action = action, .condition = stale}),
                               std::nullopt, "a write to an absent item");
            require_equal(read_one(*fresh.store, plain("b")), std::optional<Item>{}, "the absent item");
        }
    });

    cases.add("writes_of_a_batch_do_not_depend_on_each_other", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        put(*fresh.store, plain("taken"), {{"by", "me"}});
        put(*fresh.store, number("old", 1));
        const std::vector<Write> writes{
            {.key = plain("taken"), .action = Put{{{"by", "you"}}}, .condition = !item_exists()},
            {.key = plain("free"), .action = Put{{{"by", "you"}}}, .condition = !item_exists()},
            {.key = number("old", 1), .action = Erase{}, .condition = item_exists()},
            {.key = number("new", 1), .action = Update{{{"x", 1}}, {}}, .condition = item_exists()},
            {.key = word("p", "w"), .action = Update{{{"x", 1}}, {}}},
        };
        const auto answers = fresh.store->write(writes);
        require_equal(answers.size(), writes.size(), "answers");
        require_refused_by(answers[0], Item{{"by", "me"}}, "the write to the taken item");
        require(applied(answers[1]) && applied(answers[2]) && applied(answers[4]), "a write that fits was not applied");
        require_refused_by(answers[3], std::nullopt, "the write to the absent item");
        require_equal(read_one(*fresh.store, plain("taken")), {Item{{"by", "me"}}}, "the taken item");
        require_equal(read_one(*fresh.store, plain("free")), {Item{{"by", "you"}}}, "the free item");
        require_equal(read_one(*fresh.store, number("old", 1)), std::optional<Item>{}, "the erased item");
    });

    cases.add("an_invalid_write_keeps_its_whole_batch_from_being_applied", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const Write good{.key = plain("good"), .action = Put{}};
        const auto refuse = [&](std::vector<Write> bad, const std::string& what) {
            bad.insert(bad.begin(), good);
            const std::string message = require_throws<InvalidError>([&] { (void)fresh.store->write(bad); }, what);
            require_equal(read_one(*fresh.store, plain("good")), std::optional<Item>{}, "a write beside " + what);
            return message;
        };
        require_mentions(refuse({{.key = plain("twice"), .action = Put{}}, {.key = plain("twice"), .action = Erase{}}},
                                "a key named twice"),
                         "twice");
        refuse({{.key = plain("a"), .action = Check{}}}, "a check outside an atomic batch");
        require_mentions(refuse({{.key = plain("a"), .action = Update{{{"both", 1}}, {"both"}}}},
                                "an attribute that is both set and removed"),
                         "both");
        refuse({{.key = {.table = "nowhere", .partition = "a"}, .action = Put{}}}, "a write to an unknown table");
        refuse({{.key = plain(""), .action = Put{}}}, "a write to a key that does not fit");
        refuse({{.key = plain("a"), .action = Put{{{"id", 1}}}}}, "a write of a key attribute");
    });

    cases.add("an_item_that_cannot_be_read_costs_no_other_write_its_answer", [](FreshStore& fresh) {
        if (!fresh.damage) throw CaseSkipped("nothing is stored that could be spoilt");
        ensure_all(*fresh.store);
        for (const char* id : {"damaged", "there"}) put(*fresh.store, plain(id), {{"n", std::int64_t{1}}});
        fresh.damage(plain("damaged"));
        require_throws<CorruptionError>([&] { (void)read_one(*fresh.store, plain("damaged")); }, "a read of it");

        const auto create = [](const char* id) { return Write{plain(id), Put{}, !item_exists()}; };
        const std::vector<WriteAnswer> answers =
            fresh.store->write(std::vector{create("a"), create("damaged"), create("there"), create("b")});
        require_equal(answers.size(), std::size_t{4}, "answers");
        require(applied(answers[0]) && applied(answers[3]),
                "the writes that nothing stood against: " + to_text(answers[0]) + ", " + to_text(answers[3]));
        require(refused(answers[2]), "the one that an item refuses: " + to_text(answers[2]));
        const auto* failure = std::get_if<Failure>(&answers[1]);
        require(failure != nullptr && failure->kind == ErrorKind::corruption && !failure->in_doubt,
                "the one that the damaged item refuses: " + to_text(answers[1]));
        require_mentions(failure->message, "damaged");
        for (const char* id : {"a", "b"}) require(read_one(*fresh.store, plain(id)).has_value(), "what was applied");

        if (fresh.store->capabilities().atomic_writes_max == 0) return;
        const AtomicAnswer atomic = fresh.store->write_atomically(std::vector{create("c"), create("damaged")});
        failure = std::get_if<Failure>(&atomic);
        require(failure != nullptr && failure->kind == ErrorKind::corruption && !failure->in_doubt,
                "an atomic batch that the damaged item refuses");
        require_mentions(failure->message, "damaged");
        require(!read_one(*fresh.store, plain("c")), "it is applied in part");
    });

    cases.add("an_item_may_be_as_large_as_the_limit", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const Item item = item_of_size(number("a", 1), limit_for_test(*fresh.store));
        put(*fresh.store, number("a", 1), item);
        require_equal(read_one(*fresh.store, number("a", 1)), {item}, "the largest item");
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "a"}), {Record{number("a", 1), item}},
                      "the largest item");
    });

    cases.add("a_larger_item_is_invalid_and_the_message_names_item_size_and_limit", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const std::size_t limit = limit_for_test(*fresh.store);
        const Item item = item_of_size(plain("big"), limit + 1);
        const std::vector<decltype(Write::action)> actions{Put{item}, Update{item, {}}};
        for (const auto& action : actions) {
            const std::vector<Write> writes{{.key = plain("small"), .action = Put{}},
                                            {.key = plain("big"), .action = action}};
            const std::string message =
                require_throws<InvalidError>([&] { (void)fresh.store->write(writes); }, "a write beyond the limit");
            require_mentions(message, "plain/big");
            require_mentions(message, std::to_string(limit));
            require_mentions(message, std::to_string(limit + 1));
            require_equal(scan_all(*fresh.store, {.table = "plain"}), {}, "what the refused batch left");
        }
    });

    cases.add("an_update_that_grows_an_item_beyond_the_limit_fails_alone", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const Item item = item_of_size(plain("big"), limit_for_test(*fresh.store));
        put(*fresh.store, plain("big"), item);
        const std::vector<Write> writes{{.key = plain("small"), .action = Put{}},
                                        {.key = plain("big"), .action = Update{{{"more", 1}}, {}}}};
        const auto answers = fresh.store->write(writes);
        require(applied(answers.at(0)), "the write beside it was " + to_text(answers.at(0)));
        const auto* failure = std::get_if<Failure>(&answers.at(1));
        require(failure != nullptr, "the update was " + to_text(answers.at(1)));
        require(failure->kind == ErrorKind::invalid && !failure->in_doubt, "the failure is not a certain, invalid one");
        require_mentions(failure->message, "plain/big");
        require_equal(read_one(*fresh.store, plain("big")), {item}, "the item that could not grow");
    });
}

}  // namespace varve::testing::detail
