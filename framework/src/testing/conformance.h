#pragma once

#include <varve/testing/store_conformance.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// What the files conformance_*.cpp share: each adds the cases about one part of the port.

namespace varve::testing::detail {

using namespace store;

/// The cases being collected.
class Cases {
  public:
    void add(std::string name, std::function<void(FreshStore&)> body);
    std::vector<ConformanceCase> list;
};

void add_table_cases(Cases& cases);
void add_value_cases(Cases& cases);
void add_write_cases(Cases& cases);
void add_condition_cases(Cases& cases);
void add_query_cases(Cases& cases);
void add_scan_cases(Cases& cases);
void add_change_cases(Cases& cases);
void add_atomic_cases(Cases& cases);
void add_concurrency_cases(Cases& cases);

/// Throws CaseFailed with `what` unless `ok`.
void require(bool ok, const std::string& what);

std::string to_text(const Item& item);
std::string to_text(const std::optional<Item>& item);
std::string to_text(const std::vector<Record>& records);
std::string to_text(const WriteAnswer& answer);

template <class T>
void require_equal(const T& actual, const T& expected, const std::string& what) {
    if (actual == expected) return;
    if constexpr (requires { std::to_string(actual); }) {
        require(false, what + ": got " + std::to_string(actual) + ", expected " + std::to_string(expected));
    } else {
        require(false, what + ": got " + to_text(actual) + ", expected " + to_text(expected));
    }
}

/// Throws CaseFailed unless `call` throws an E; gives its message.
template <class E, class Call>
std::string require_throws(Call call, const std::string& what) {
    try {
        call();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        require(false, what + ": threw another error: " + error.what());
    }
    require(false, what + ": no error was thrown");
    return {};
}
void require_mentions(const std::string& message, std::string_view part);

// Three tables, one of each shape, made anew by each case that wants them.
TableSchema plain_table();    ///< "plain", no sort key
TableSchema numbers_table();  ///< "numbers", an integer one
TableSchema words_table();    ///< "words", a text one
void ensure_all(ItemStore& store);

Key plain(std::string partition);
Key number(std::string partition, std::int64_t sort);
Key word(std::string partition, std::string sort);

std::optional<Item> read_one(ItemStore& store, const Key& key);
WriteAnswer write_one(ItemStore& store, Write write);
bool applied(const WriteAnswer& answer);
bool refused(const WriteAnswer& answer);
/// Writes without a condition, and requires that it is applied.
void put(ItemStore& store, const Key& key, Item item = {});
void erase(ItemStore& store, const Key& key);

/// Requires that the records are no more than a page may hold.
void require_fits(const std::vector<Record>& page);
/// All pages. Requires that none has more than `limit` records or than a page may hold, and that they end.
std::vector<Record> query_all(ItemStore& store, Query query);
std::vector<Record> scan_all(ItemStore& store, Scan scan);

/// Runs `body(0)` … `body(count - 1)` on threads of their own, and rethrows the first exception of one.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace varve::testing::detail
