#include "testing/conformance.h"

#include <varve/core/error.h>

#include <limits>

namespace varve::testing::detail {
namespace {

/// Texts that collations, trimming, normalisation or escaping would take for one another, or damage.
const std::vector<std::string>& awkward_texts() {
    static const std::vector<std::string> texts{"a",
                                                "A",
                                                "a ",
                                                " a",
                                                "a\n",
                                                "ä",
                                                "a\xcc\x88",
                                                "ß",
                                                "ss",
                                                "I",
                                                "ı",
                                                "%",
                                                "_",
                                                "'",
                                                "\"",
                                                "\\",
                                                "/",
                                                "a/b",
                                                "a:b",
                                                "1",
                                                "01",
                                                "1.0",
                                                "null",
                                                "{\"a\":1}",
                                                "$x",
                                                "日本語",
                                                "😀",
                                                "\x7f",
                                                "\x01",
                                                "\xf4\x8f\xbf\xbf",
                                                "#a",
                                                "true",
                                                "\t",
                                                "e\xcc\x81",
                                                "é",
                                                "\xef\xbf\xbe",
                                                "\xed\x9f\xbf",
                                                "\xc2\x80"};
    return texts;
}

/// Not UTF-8, or with a NUL.
const std::vector<std::string>& bad_texts() {
    static const std::vector<std::string> texts{
        std::string("a\0b", 3), std::string("\0", 1), "\xff", "a\xc3",   "\xc0\xaf",
        "\xed\xa0\x80",         "\xf5\x80\x80\x80",   "\x80", "\xe2\x82"};
    return texts;
}

}  // namespace

void add_value_cases(Cases& cases) {
    cases.add("every_value_comes_back_as_it_was", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        Bytes all_bytes;
        for (int i = 0; i < 256; ++i) all_bytes.push_back(static_cast<std::byte>(i));
        Item item{{"smallest", std::numeric_limits<std::int64_t>::min()},
                  {"largest", std::numeric_limits<std::int64_t>::max()},
                  {"beyond_doubles", (std::int64_t{1} << 53) + 1},
                  {"zero", 0},
                  {"minus_one", -1},
                  {"empty_text", ""},
                  {"empty_bytes", Bytes{}},
                  {"bytes", all_bytes},
                  {"one_zero_byte", Bytes{std::byte{0}}},
                  {"number_as_text", "12"}};
        for (std::size_t i = 0; i < awkward_texts().size(); ++i) item["text" + std::to_string(i)] = awkward_texts()[i];
        const std::vector<Key> keys{plain("a"), number("a", 1), word("a", "b")};
        for (const Key& key : keys) {
            put(*fresh.store, key, item);
            require_equal(read_one(*fresh.store, key), {item}, "the item that was put");
        }
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "a"}), {Record{keys[1], item}},
                      "query");
        require_equal(scan_all(*fresh.store, {.table = "words"}), {Record{keys[2], item}}, "scan");
    });

    cases.add("an_item_without_attributes_exists", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        put(*fresh.store, plain("a"));
        require_equal(read_one(*fresh.store, plain("a")), {Item{}}, "the empty item");
        require(refused(write_one(*fresh.store, {.key = plain("a"), .action = Put{}, .condition = !item_exists()})),
                "an empty item counts as absent");
        require_equal(scan_all(*fresh.store, {.table = "plain"}), {Record{plain("a"), {}}}, "scan");
    });

    cases.add("attribute_names_are_1_to_255_bytes_of_any_text", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        Item item{{std::string(255, 'n'), "long"}};
        for (const std::string& text : awkward_texts()) item.emplace(text, text);
        put(*fresh.store, word("a", "b"), item);
        require_equal(read_one(*fresh.store, word("a", "b")), {item}, "the item with awkward names");
        for (const auto& [name, value] : item) {
            require(applied(write_one(*fresh.store, {.key = word("a", "b"),
                                                     .action = Update{.set = {{name, 1}}, .remove = {}},
                                                     .condition = equals(name, value) && exists(name)})),
                    "a condition and an update of an attribute named '" + name + "'");
        }
    });

    cases.add("keys_are_told_apart_byte_by_byte", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        std::vector<std::string> texts = awkward_texts();
        texts.push_back(std::string(1024, 'k'));
        texts.push_back(std::string(1023, 'k') + "K");
        std::vector<Write> writes;
        for (const std::string& text : texts) {
            writes.push_back({.key = plain(text), .action = Put{{{"was", text}}}, .condition = !item_exists()});
            writes.push_back({.key = word(text, text), .action = Put{{{"was", text}}}, .condition = !item_exists()});
            writes.push_back({.key = word("p", text), .action = Put{{{"was", text}}}, .condition = !item_exists()});
        }
        const auto answers = fresh.store->write(writes);
        require_equal(answers.size(), writes.size(), "answers");
        for (std::size_t i = 0; i < writes.size(); ++i) {
            require(applied(answers[i]), to_string(writes[i].key) + " was taken for another key");
            require_equal(read_one(*fresh.store, writes[i].key), {std::get<Put>(writes[i].action).item},
                          to_string(writes[i].key));
        }
        require_equal(scan_all(*fresh.store, {.table = "plain"}).size(), texts.size(), "items of table plain");
    });

    cases.add("text_that_is_not_utf8_or_has_a_nul_is_invalid", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        ensure_all(store);
        for (const std::string& bad : bad_texts()) {
            const auto refuse = [&](const Key& key, const Item& item, const std::string& what) {
                require_throws<InvalidError>([&] { put(store, key, item); }, what);
            };
            refuse(plain(bad), {}, "a put under a bad partition key");
            refuse(word("a", bad), {}, "a put under a bad sort key");
            refuse(plain("a"), {{"x", bad}}, "a bad text value");
            refuse(plain("a"), {{bad, 1}}, "a bad attribute name");
            require_throws<InvalidError>([&] { (void)read_one(store, plain(bad)); }, "a read of a bad key");
            require_throws<InvalidError>([&] { (void)store.query({.table = "words", .partition = bad}); },
                                         "a query of a bad partition");
        }
        require_equal(scan_all(store, {.table = "plain"}), {}, "what the refused writes left");
    });

    cases.add("a_key_that_does_not_fit_its_table_is_invalid", [](FreshStore& fresh) {
        ItemStore& store = *fresh.store;
        ensure_all(store);
        const std::vector<Key> misfits{
            {.table = "plain", .partition = "a", .sort = 1},
            {.table = "plain", .partition = "a", .sort = "b"},
            {.table = "plain", .partition = ""},
            {.table = "plain", .partition = std::string(1025, 'k')},
            {.table = "numbers", .partition = "a"},
            {.table = "numbers", .partition = "a", .sort = "1"},
            {.table = "numbers", .partition = "", .sort = 1},
            {.table = "words", .partition = "a"},
            {.table = "words", .partition = "a", .sort = 1},
            {.table = "words", .partition = "a", .sort = ""},
            {.table = "words", .partition = "a", .sort = std::string(1025, 'k')},
        };
        for (const Key& key : misfits) {
            const std::string what = "the key " + to_string(key).substr(0, 40);
            require_throws<InvalidError>([&] { (void)read_one(store, key); }, "read of " + what);
            require_throws<InvalidError>([&] { put(store, key); }, "put of " + what);
            require_throws<InvalidError>([&] { erase(store, key); }, "erase of " + what);
        }
        require_throws<InvalidError>([&] { (void)store.query({.table = "numbers", .partition = "a", .first = "1"}); },
                                     "a query from a text on, over integers");
        require_throws<InvalidError>([&] { (void)store.query({.table = "words", .partition = "a", .last = 1}); },
                                     "a query up to an integer, over texts");
        require_throws<InvalidError>([&] { (void)store.query({.table = "words", .partition = ""}); },
                                     "a query of no partition");
    });

    cases.add("a_bad_attribute_name_is_invalid", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        for (const std::string& name : {std::string{}, std::string(256, 'n'), std::string{"id"}, std::string{"n"}}) {
            const std::string what = "an attribute named '" + name.substr(0, 10) + "'";
            require_throws<InvalidError>([&] { put(*fresh.store, number("a", 1), {{name, 1}}); }, what + " put");
            const auto update = [&](Update update) {
                (void)write_one(*fresh.store, {.key = number("a", 1), .action = std::move(update)});
            };
            require_throws<InvalidError>([&] { update({.set = {{name, 1}}, .remove = {}}); }, what + " set");
            require_throws<InvalidError>([&] { update({.set = {}, .remove = {name}}); }, what + " removed");
        }
        require_equal(read_one(*fresh.store, number("a", 1)), std::optional<Item>{}, "what the refused writes left");
    });
}

}  // namespace varve::testing::detail
