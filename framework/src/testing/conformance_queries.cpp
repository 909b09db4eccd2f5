#include "testing/conformance.h"

#include <varve/core/error.h>

#include <algorithm>
#include <limits>

namespace varve::testing::detail {
namespace {

const std::vector<std::int64_t>& sorted_numbers() {
    static const std::vector<std::int64_t> numbers{std::numeric_limits<std::int64_t>::min(),
                                                   -10'000'000'000,
                                                   -100,
                                                   -20,
                                                   -3,
                                                   -1,
                                                   0,
                                                   1,
                                                   2,
                                                   9,
                                                   10,
                                                   100,
                                                   (std::int64_t{1} << 53) + 1,
                                                   std::numeric_limits<std::int64_t>::max()};
    return numbers;
}

const std::vector<std::string>& sorted_words() {
    static const std::vector<std::string> words{
        "\x01", " ", "!", "0", "1",    "10",           "9", "A", "B", "Z", "_", "a", "a ", "a!", "aa", "ab", "b",
        "z",    "~", "ß", "ä", "日本", "\xef\xbf\xbd", "😀"};
    return words;
}

/// Written in another order than they are sorted, among items of other partitions.
std::vector<Record> fill_numbers(ItemStore& store) {
    std::vector<Record> records;
    std::vector<Write> writes;
    for (std::int64_t sort : sorted_numbers()) {
        records.push_back({number("p", sort), {{"n_is", sort}}});
        writes.push_back({.key = records.back().key, .action = Put{records.back().item}});
    }
    for (const char* other : {"o", "p ", "p0", "pp", "P"}) {
        writes.push_back({.key = number(other, 5), .action = Put{}});
    }
    std::ranges::reverse(writes);
    std::rotate(writes.begin(), writes.begin() + 7, writes.end());
    for (const WriteAnswer& answer : store.write(writes)) require(applied(answer), "a put was " + to_text(answer));
    return records;
}

std::vector<Record> slice(const std::vector<Record>& records, const SortKey& first, const SortKey& last,
                          bool descending) {
    const auto open = [](const SortKey& sort) { return std::holds_alternative<std::monostate>(sort); };
    std::vector<Record> result;
    for (const Record& one : records) {
        if ((open(first) || first <= one.key.sort) && (open(last) || one.key.sort <= last)) result.push_back(one);
    }
    if (descending) std::ranges::reverse(result);
    return result;
}

}  // namespace

void add_query_cases(Cases& cases) {
    cases.add("integer_sort_keys_are_in_the_order_of_numbers", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = fill_numbers(*fresh.store);
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "p"}), records, "the partition");
    });

    cases.add("text_sort_keys_are_in_the_order_of_their_bytes", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        std::vector<Record> records;
        for (const std::string& sort : sorted_words()) records.push_back({word("p", sort), {{"x", sort}}});
        for (auto one = records.rbegin(); one != records.rend(); ++one) put(*fresh.store, one->key, one->item);
        require_equal(query_all(*fresh.store, {.table = "words", .partition = "p"}), records, "ascending");
        require_equal(query_all(*fresh.store, {.table = "words", .partition = "p", .first = "B", .last = "aa"}),
                      slice(records, "B", "aa", false), "a range");
        require_equal(query_all(*fresh.store, {.table = "words", .partition = "p", .descending = true, .limit = 5}),
                      slice(records, {}, {}, true), "descending, in pages");
    });

    cases.add("both_bounds_of_a_range_belong_to_it", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = fill_numbers(*fresh.store);
        constexpr std::int64_t min = std::numeric_limits<std::int64_t>::min();
        constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
        const std::vector<std::pair<SortKey, SortKey>> ranges{
            {-20, 9},   {-19, 8},  {1, {}},   {{}, 1},    {0, 0},     {50, 50},   {{}, {}},
            {min, max}, {max, {}}, {{}, min}, {min, min}, {max, max}, {101, 200}, {9, -20},
        };
        for (const auto& [first, last] : ranges) {
            for (const bool descending : {false, true}) {
                const Query query{
                    .table = "numbers", .partition = "p", .first = first, .last = last, .descending = descending};
                require_equal(query_all(*fresh.store, query), slice(records, first, last, descending),
                              "the range from " + to_string(Key{"", "", first}) + " to " +
                                  to_string(Key{"", "", last}) + (descending ? " descending" : ""));
            }
        }
    });

    cases.add("pages_make_up_the_whole_in_both_directions", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = fill_numbers(*fresh.store);
        for (std::size_t limit = 1; limit <= 3; ++limit) {
            for (const bool descending : {false, true}) {
                Query query{.table = "numbers", .partition = "p", .descending = descending, .limit = limit};
                require_equal(query_all(*fresh.store, query), slice(records, {}, {}, descending),
                              "pages of " + std::to_string(limit));
                query.first = -20;
                query.last = 10;
                require_equal(query_all(*fresh.store, query), slice(records, -20, 10, descending),
                              "pages of " + std::to_string(limit) + " of a range");
            }
        }
    });

    cases.add("a_page_is_full_when_it_holds_so_many_bytes", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        // Two full pages and a half.
        const std::size_t size = std::min<std::size_t>(250'000, fresh.store->capabilities().item_bytes_max - 1000);
        const auto count = static_cast<int>(5 * page_bytes / size / 2);
        std::vector<Record> records;
        for (int i = 0; i < count; ++i) {
            records.push_back({number("p", i), {{"text", std::string(size, 'x')}}});
            put(*fresh.store, records.back().key, records.back().item);
        }
        const std::vector<Record> descending(records.rbegin(), records.rend());
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "p"}), records, "ascending");
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "p", .descending = true}), descending,
                      "descending");
        auto scanned = scan_all(*fresh.store, {.table = "numbers"});
        std::ranges::sort(scanned, {}, &Record::key);
        require_equal(scanned, records, "a scan");
        if (!fresh.store->capabilities().ordered_changes) return;
        std::vector<Record> changed;
        for (Position last = 0;;) {
            std::vector<Record> page;
            for (Change& one : fresh.store->changes("numbers", last, 1000)) {
                last = one.position;
                page.push_back(std::move(one.record));
            }
            if (page.empty()) break;
            require_fits(page);
            std::ranges::move(page, std::back_inserter(changed));
        }
        require_equal(changed, records, "the changes");
    });

    cases.add("a_query_goes_on_where_it_was_when_items_come_and_go", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        for (const bool descending : {false, true}) {
            for (int i = 0; i < 20; ++i) put(*fresh.store, number("p", i));
            Query query{.table = "numbers", .partition = "p", .descending = descending, .limit = 2};
            std::vector<std::int64_t> seen;
            for (int pages = 0; pages < 1000; ++pages) {
                const Page page = fresh.store->query(query);
                for (const Record& record : page.records) {
                    seen.push_back(std::get<std::int64_t>(record.key.sort));
                    erase(*fresh.store, record.key);
                }
                if (!page.next) break;
                query.next = page.next;
            }
            std::vector<std::int64_t> expected(20);
            for (int i = 0; i < 20; ++i) expected[static_cast<std::size_t>(i)] = descending ? 19 - i : i;
            require(seen == expected, "a query whose records are erased page by page skips or repeats some");
        }
    });

    cases.add("what_is_read_together_is_what_each_read_finds", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = fill_numbers(*fresh.store);
        put(*fresh.store, plain("a"), {{"n", std::int64_t{1}}});
        put(*fresh.store, word("p", "w"), {{"n", std::int64_t{2}}});
        const std::vector<Key> keys{plain("a"),     plain("nobody"), number("p", 5),
                                    number("p", 2), plain("a"),      word("p", "w")};
        const std::vector<Query> queries{
            {.table = "numbers", .partition = "p"},
            {.table = "words", .partition = "p"},
            {.table = "numbers", .partition = "p", .descending = true, .limit = 2},
            {.table = "numbers", .partition = "nobody"},
            {.table = "numbers", .partition = "p", .first = std::int64_t{9}, .last = std::int64_t{2}},
            {.table = "numbers", .partition = "p", .first = std::int64_t{2}, .last = std::int64_t{9}}};
        const auto same = [&](std::span<const Key> some, std::span<const Query> ranges) {
            const FoundTogether found = fresh.store->read_together(some, ranges);
            require_equal(found.items.size(), some.size(), "answers to the keys");
            require_equal(found.pages.size(), ranges.size(), "answers to the queries");
            for (std::size_t i = 0; i < some.size(); ++i)
                require_equal(found.items[i], read_one(*fresh.store, some[i]), "the item " + to_string(some[i]));
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                std::vector<Record> all = found.pages[i].records;
                Query rest = ranges[i];
                rest.next = found.pages[i].next;
                if (rest.next) std::ranges::move(query_all(*fresh.store, rest), std::back_inserter(all));
                require_equal(all, query_all(*fresh.store, ranges[i]), "the pages of query " + std::to_string(i));
            }
        };
        same(keys, queries);
        same(keys, {});
        same({}, queries);
        same(std::span{keys}.first(1), std::span{queries}.first(1));
        same({}, {});
        require_throws<InvalidError>(
            [&] { (void)fresh.store->read_together(keys, std::vector<Query>{{.table = "none", .partition = "p"}}); },
            "a query of a table that nobody ensured");
    });

    cases.add("a_query_of_nothing_is_empty", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "nobody"}), {}, "no partition");
        put(*fresh.store, number("p", 1));
        erase(*fresh.store, number("p", 1));
        require_equal(query_all(*fresh.store, {.table = "numbers", .partition = "p"}), {}, "an emptied partition");
    });

    cases.add("a_query_without_sort_key_or_limit_is_invalid", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        require_mentions(require_throws<InvalidError>(
                             [&] { (void)fresh.store->query({.table = "plain", .partition = "a"}); }, "no sort key"),
                         "plain");
        require_throws<InvalidError>(
            [&] { (void)fresh.store->query({.table = "numbers", .partition = "a", .limit = 0}); }, "limit 0");
    });
}

}  // namespace varve::testing::detail
