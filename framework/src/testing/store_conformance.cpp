#include "testing/conformance.h"

#include <varve/testing/store_conformance.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>

namespace varve::testing {

std::vector<ConformanceCase> store_conformance() {
    detail::Cases cases;
    detail::add_table_cases(cases);
    detail::add_value_cases(cases);
    detail::add_write_cases(cases);
    detail::add_condition_cases(cases);
    detail::add_query_cases(cases);
    detail::add_scan_cases(cases);
    detail::add_change_cases(cases);
    detail::add_atomic_cases(cases);
    detail::add_concurrency_cases(cases);
    return std::move(cases.list);
}

namespace detail {

void Cases::add(std::string name, std::function<void(FreshStore&)> body) {
    list.push_back({std::move(name), [body = std::move(body)](const StoreFactory& factory) {
                        FreshStore fresh = factory();
                        body(fresh);
                    }});
}

void require(bool ok, const std::string& what) {
    if (!ok) throw CaseFailed(what);
}

void require_mentions(const std::string& message, std::string_view part) {
    require(message.find(part) != std::string::npos,
            "the message does not name '" + std::string{part} + "': " + message);
}

namespace {

std::string to_text(const Value& value) {
    constexpr std::size_t shown = 60;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&value)) {
        return '"' + text->substr(0, shown) + (text->size() > shown ? "…" : "") + '"';
    }
    static constexpr char digits[] = "0123456789abcdef";
    const Bytes& bytes = std::get<Bytes>(value);
    std::string text = "0x";
    for (std::size_t i = 0; i < bytes.size() && i < shown; ++i) {
        text += digits[std::to_integer<unsigned>(bytes[i]) >> 4];
        text += digits[std::to_integer<unsigned>(bytes[i]) & 15];
    }
    return text + (bytes.size() > shown ? "…" : "");
}

}  // namespace

std::string to_text(const Item& item) {
    std::string text = "{";
    for (const auto& [name, value] : item) {
        if (text.size() > 1) text += ", ";
        text += name + ": " + to_text(value);
    }
    return text + "}";
}

std::string to_text(const std::optional<Item>& item) {
    return item ? to_text(*item) : "no item";
}

std::string to_text(const std::vector<Record>& records) {
    std::string text = std::to_string(records.size()) + " records [";
    for (std::size_t i = 0; i < records.size() && i < 20; ++i) {
        if (i > 0) text += ", ";
        text += store::to_string(records[i].key) + " " + to_text(records[i].item);
    }
    return text + (records.size() > 20 ? ", …]" : "]");
}

std::string to_text(const WriteAnswer& answer) {
    if (std::holds_alternative<Applied>(answer)) return "applied";
    if (const auto* refusal = std::get_if<Refused>(&answer)) return "refused by " + to_text(refusal->current);
    return "failed: " + std::get<Failure>(answer).message;
}

TableSchema plain_table() {
    return {.name = "plain", .partition_attribute = "id"};
}
TableSchema numbers_table() {
    return {.name = "numbers", .partition_attribute = "id", .sort_attribute = "n", .sort = SortType::integer};
}
TableSchema words_table() {
    return {.name = "words", .partition_attribute = "id", .sort_attribute = "word", .sort = SortType::text};
}

void ensure_all(ItemStore& store) {
    store.ensure_table(plain_table());
    store.ensure_table(numbers_table());
    store.ensure_table(words_table());
}

Key plain(std::string partition) {
    return {.table = "plain", .partition = std::move(partition)};
}
Key number(std::string partition, std::int64_t sort) {
    return {.table = "numbers", .partition = std::move(partition), .sort = sort};
}
Key word(std::string partition, std::string sort) {
    return {.table = "words", .partition = std::move(partition), .sort = std::move(sort)};
}

std::optional<Item> read_one(ItemStore& store, const Key& key) {
    auto items = store.read({&key, 1});
    require_equal(items.size(), std::size_t{1}, "answers to a read of one key");
    return std::move(items[0]);
}

WriteAnswer write_one(ItemStore& store, Write write) {
    auto answers = store.write({&write, 1});
    require_equal(answers.size(), std::size_t{1}, "answers to one write");
    return std::move(answers[0]);
}

bool applied(const WriteAnswer& answer) {
    return std::holds_alternative<Applied>(answer);
}
bool refused(const WriteAnswer& answer) {
    return std::holds_alternative<Refused>(answer);
}

void put(ItemStore& store, const Key& key, Item item) {
    const WriteAnswer answer = write_one(store, {.key = key, .action = Put{std::move(item)}});
    require(applied(answer), "a put of " + to_string(key) + " without a condition was " + to_text(answer));
}

void erase(ItemStore& store, const Key& key) {
    const WriteAnswer answer = write_one(store, {.key = key, .action = Erase{}});
    require(applied(answer), "an erase of " + to_string(key) + " without a condition was " + to_text(answer));
}

namespace {

constexpr int pages_max = 10'000;

template <class Request, class Call>
std::vector<Record> all_pages(Request request, Call call) {
    std::vector<Record> records;
    for (int pages = 0; pages < pages_max; ++pages) {
        Page page = call(request);
        require(page.records.size() <= request.limit, "a page has " + std::to_string(page.records.size()) +
                                                          " records, its limit was " + std::to_string(request.limit));
        require_fits(page.records);
        std::ranges::move(page.records, std::back_inserter(records));
        if (!page.next) return records;
        request.next = std::move(page.next);
    }
    throw CaseFailed("the pages of table '" + request.table + "' do not end");
}

}  // namespace

void require_fits(const std::vector<Record>& page) {
    std::size_t before_last = 0;
    for (std::size_t i = 0; i + 1 < page.size(); ++i) before_last += bytes(page[i].key, page[i].item);
    require(before_last < page_bytes, "a page goes on after " + std::to_string(before_last) + " bytes");
}

std::vector<Record> query_all(ItemStore& store, Query query) {
    return all_pages(std::move(query), [&](const Query& page) { return store.query(page); });
}

std::vector<Record> scan_all(ItemStore& store, Scan scan) {
    return all_pages(std::move(scan), [&](const Scan& page) { return store.scan(page); });
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& body) {
    std::vector<std::exception_ptr> errors(count);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                body(i);
            } catch (...) {
                errors[i] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace detail
}  // namespace varve::testing
