#include "testing/conformance.h"

#include <algorithm>
#include <set>

namespace varve::testing::detail {
namespace {

std::vector<Record> fill(ItemStore& store) {
    std::vector<Record> records;
    std::vector<Write> writes;
    for (int i = 0; i < 60; ++i) {
        records.push_back({number("p" + std::to_string(i % 13), i), {{"i", i}}});
        writes.push_back({.key = records.back().key, .action = Put{records.back().item}});
    }
    for (const WriteAnswer& answer : store.write(writes)) require(applied(answer), "a put was " + to_text(answer));
    return records;
}

std::vector<Record> in_order(std::vector<Record> records) {
    std::ranges::sort(records, {}, &Record::key);
    return records;
}

}  // namespace

void add_scan_cases(Cases& cases) {
    cases.add("a_scan_sees_every_item_once", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        require_equal(scan_all(*fresh.store, {.table = "numbers"}), {}, "an empty table");
        const auto records = in_order(fill(*fresh.store));
        for (std::size_t limit : {1u, 2u, 3u, 60u, 1000u}) {
            require_equal(in_order(scan_all(*fresh.store, {.table = "numbers", .limit = limit})), records,
                          "a scan in pages of " + std::to_string(limit));
        }
    });

    cases.add("segments_cover_a_table_without_overlap", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = in_order(fill(*fresh.store));
        for (std::uint32_t segments : {1u, 2u, 3u, 7u, 40u}) {
            std::vector<Record> seen;
            for (std::uint32_t segment = 0; segment < segments; ++segment) {
                const auto part =
                    scan_all(*fresh.store, {.table = "numbers", .segment = segment, .segments = segments, .limit = 4});
                seen.insert(seen.end(), part.begin(), part.end());
            }
            require_equal(in_order(seen), records, std::to_string(segments) + " segments together");
        }
    });

    cases.add("tables_of_every_shape_can_be_scanned", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        std::vector<Record> plains;
        std::vector<Record> words;
        for (const char* name : {"a", "1:2", "ä", "日本", "-", "a b"}) {
            plains.push_back({plain(name), {{"x", name}}});
            words.push_back({word(name, "1"), {{"x", 1}}});
            words.push_back({word("p", name), {{"x", 2}}});
        }
        for (const auto& records : {plains, words}) {
            for (const Record& one : records) put(*fresh.store, one.key, one.item);
        }
        for (std::size_t limit = 1; limit <= 3; ++limit) {
            require_equal(in_order(scan_all(*fresh.store, {.table = "plain", .limit = limit})), in_order(plains),
                          "a table without sort keys");
            require_equal(in_order(scan_all(*fresh.store, {.table = "words", .limit = limit})), in_order(words),
                          "a table with textual sort keys");
        }
    });

    cases.add("a_scan_misses_nothing_that_stays_while_others_come_and_go", [](FreshStore& fresh) {
        ensure_all(*fresh.store);
        const auto records = fill(*fresh.store);
        std::set<Key> staying;
        for (const Record& one : records) {
            if (std::get<std::int64_t>(one.key.sort) % 2 == 0) staying.insert(one.key);
        }
        Scan scan{.table = "numbers", .limit = 3};
        std::set<Key> seen;
        for (int i = 0; i < 1000; ++i) {
            const Page page = fresh.store->scan(scan);
            for (const Record& record : page.records) {
                require(seen.insert(record.key).second || !staying.contains(record.key),
                        to_string(record.key) + " was seen twice");
                if (!staying.contains(record.key)) erase(*fresh.store, record.key);
            }
            if (!page.next) break;
            scan.next = page.next;
            if (i < 20) put(*fresh.store, number("new" + std::to_string(i), i));
            put(*fresh.store, *staying.begin(), {{"round", i}});
        }
        for (const Key& key : staying) require(seen.contains(key), to_string(key) + " was not seen");
    });
}

}  // namespace varve::testing::detail
