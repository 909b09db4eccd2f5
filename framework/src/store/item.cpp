#include <varve/core/error.h>
#include <varve/store/item.h>

#include <algorithm>

namespace varve::store {
namespace {

constexpr std::size_t key_bytes_max = 1024;
constexpr std::size_t attribute_bytes_max = 255;

/// UTF-8 as in RFC 3629, without overlong forms, surrogates and NUL.
bool is_text(std::string_view s) {
    const auto* p = reinterpret_cast<const unsigned char*>(s.data());
    const auto* const end = p + s.size();
    while (p != end) {
        if (*p == 0) return false;
        if (*p < 0x80) {
            ++p;
            continue;
        }
        const int length = *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
        if (length == 0 || end - p < length) return false;
        for (int i = 1; i < length; ++i) {
            if ((p[i] & 0xc0) != 0x80) return false;
        }
        if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] > 0x8f)) {
            return false;
        }
        p += length;
    }
    return true;
}

void check_key_text(std::string_view what, const std::string& text) {
    if (text.empty()) throw InvalidError(std::string{what} + " is empty");
    if (text.size() > key_bytes_max) {
        throw InvalidError(std::string{what} + " has " + std::to_string(text.size()) + " bytes, at most " +
                           std::to_string(key_bytes_max) + " are allowed: " + text.substr(0, 40) + "…");
    }
    if (!is_text(text)) throw InvalidError(std::string{what} + " is not UTF-8 without NUL");
}

void check_attribute(const TableSchema& schema, std::string_view name) {
    if (name.empty() || name.size() > attribute_bytes_max || !is_text(name)) {
        throw InvalidError("an attribute's name is 1 to 255 bytes of UTF-8, in table '" + schema.name + "' one has " +
                           std::to_string(name.size()));
    }
}

}  // namespace

std::string to_string(const Key& key) {
    std::string text = key.table + "/" + key.partition;
    if (const auto* number = std::get_if<std::int64_t>(&key.sort)) text += "/" + std::to_string(*number);
    if (const auto* name = std::get_if<std::string>(&key.sort)) text += "/" + *name;
    return text;
}

const std::string* text(const Item& item, std::string_view attribute) {
    const auto found = item.find(attribute);
    return found == item.end() ? nullptr : std::get_if<std::string>(&found->second);
}

const std::int64_t* integer(const Item& item, std::string_view attribute) {
    const auto found = item.find(attribute);
    return found == item.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
}

std::size_t bytes(const Key& key, const Item& item) {
    constexpr std::size_t integer_bytes = 21;
    const auto size = [](const Value& value) {
        if (const auto* t = std::get_if<std::string>(&value)) return t->size();
        if (const auto* b = std::get_if<Bytes>(&value)) return b->size();
        return integer_bytes;
    };
    std::size_t total = key.partition.size();
    if (const auto* name = std::get_if<std::string>(&key.sort)) total += name->size();
    if (std::holds_alternative<std::int64_t>(key.sort)) total += integer_bytes;
    for (const auto& [name, value] : item) total += name.size() + size(value);
    return total;
}

std::string to_string(const TableSchema& schema) {
    std::string text = schema.name + " (" + schema.partition_attribute;
    if (schema.sort != SortType::none) text += ", " + schema.sort_attribute;
    if (schema.sort == SortType::integer) text += " integer";
    if (schema.sort == SortType::text) text += " text";
    if (!schema.expiry_attribute.empty()) text += ", expires by " + schema.expiry_attribute;
    return text + ")";
}

void check(const TableSchema& schema) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    };
    if (schema.name.size() < 3 || schema.name.size() > 200 || !std::ranges::all_of(schema.name, allowed)) {
        throw InvalidError("a table's name is 3 to 200 of a-z A-Z 0-9 _ - . and '" + schema.name + "' is not");
    }
    check_attribute(schema, schema.partition_attribute);
    if (schema.sort_attribute.empty() != (schema.sort == SortType::none)) {
        throw InvalidError("table '" + schema.name + "' must name its sort attribute exactly if it has a sort key");
    }
    if (schema.sort_attribute == schema.partition_attribute) {
        throw InvalidError("table '" + schema.name + "' names both parts of its key '" + schema.sort_attribute + "'");
    }
}

void check(const TableSchema& schema, const Key& key) {
    check_key_text("the partition key for table '" + schema.name + "'", key.partition);
    if (static_cast<std::size_t>(schema.sort) != key.sort.index()) {
        static constexpr const char* names[] = {"no sort key", "an integer sort key", "a text sort key"};
        throw InvalidError("table '" + schema.name + "' has " + names[static_cast<std::size_t>(schema.sort)] +
                           ", the key " + to_string(key) + " has " + names[key.sort.index()]);
    }
    if (const auto* name = std::get_if<std::string>(&key.sort))
        check_key_text("the sort key for table '" + schema.name + "'", *name);
}

void check(const TableSchema& schema, const Item& item) {
    for (const auto& [name, value] : item) {
        check_attribute(schema, name);
        if (name == schema.partition_attribute || name == schema.sort_attribute) {
            throw InvalidError("attribute '" + name + "' is part of the key of table '" + schema.name + "'");
        }
        const auto* content = std::get_if<std::string>(&value);
        if (content != nullptr && !is_text(*content)) {
            throw InvalidError("attribute '" + name + "' in table '" + schema.name + "' is not UTF-8 without NUL");
        }
    }
}

}  // namespace varve::store
