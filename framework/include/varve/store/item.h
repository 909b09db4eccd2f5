#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace varve::store {

using Bytes = std::vector<std::byte>;

/// A std::variant that survives when memory runs out during a copy. The copy constructor of libstdc++ 12 then destroys
/// what it has not made, if all alternatives are strings, vectors and plain data; its assignment does not.
template <class... Alternatives>
struct Either : std::variant<Alternatives...> {
    using Variant = std::variant<Alternatives...>;
    using Variant::Variant;

    Either() = default;
    Either(const Either& other) : Variant() { Variant::operator=(other); }
    Either(Either&&) noexcept = default;
    Either& operator=(const Either&) = default;
    Either& operator=(Either&&) noexcept = default;
};

/// One attribute of an item: a 64-bit integer, UTF-8 text, or bytes. Every store can hold these three, and compare and
/// index them.
using Value = Either<std::int64_t, std::string, Bytes>;

/// The attributes of one stored item, without those of its key. Names are 1 to 255 bytes of UTF-8.
using Item = std::map<std::string, Value, std::less<>>;

/// Orders the items of one partition; monostate in tables without a sort key. Text compares byte by byte.
using SortKey = Either<std::monostate, std::int64_t, std::string>;

/// Names one item of a store. `partition` is 1 to 1024 bytes of UTF-8, and so is a textual sort key.
struct Key {
    std::string table;
    std::string partition;
    SortKey sort = {};

    auto operator<=>(const Key&) const = default;
};

/// "events/account-alice/7": for messages.
std::string to_string(const Key& key);

/// An item with its key.
struct Record {
    Key key;
    Item item;

    bool operator==(const Record&) const = default;
};

/// The text, or the integer, of an attribute; nullptr if it is missing or of another type.
const std::string* text(const Item& item, std::string_view attribute);
const std::int64_t* integer(const Item& item, std::string_view attribute);

/// How many bytes of Capabilities::item_bytes_max an item takes: its attributes' names and values, and its key's
/// values. An integer counts as 21 bytes. DynamoDB never counts more.
std::size_t bytes(const Key& key, const Item& item);

enum class SortType { none, integer, text };

/// The shape of a table. Attributes other than those of the key need no declaration.
struct TableSchema {
    std::string name;                 ///< 3 to 200 of a-z A-Z 0-9 _ - .
    std::string partition_attribute;  ///< where other clients find the key's parts
    std::string sort_attribute = {};  ///< empty exactly when `sort` is none
    SortType sort = SortType::none;
    std::string expiry_attribute = {};  ///< an integer attribute, Unix time in seconds, after which the store MAY
                                        ///< remove an item by itself; empty: never

    bool operator==(const TableSchema&) const = default;
};

/// "events (aggregateId, version integer)": for messages.
std::string to_string(const TableSchema& schema);

/// Throws an InvalidError that names the rule: one that a schema breaks, or a key in a table of this schema.
void check(const TableSchema& schema);
void check(const TableSchema& schema, const Key& key);
/// Throws InvalidError if an attribute has no name, a name that is too long, or the name of a key attribute.
void check(const TableSchema& schema, const Item& item);

}  // namespace varve::store
