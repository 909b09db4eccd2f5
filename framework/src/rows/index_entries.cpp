#include "rows/index_entries.h"

#include "rows/stored_rows.h"

#include <varve/core/error.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

namespace varve::detail {
namespace {

/// What an entry says: whose it is. A row of the table of all entries.
struct IndexEntry {
    static constexpr std::string_view table = "indexes";
    static constexpr bool sorted = true;
    std::string partition;
    std::string sort;
};

constexpr char end_of_value = '\x01';
constexpr char escape = '\x02';
constexpr char after_end = '\x02';  // value + this sorts after all entries of the value, and before all others

std::string escaped(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        const bool low = static_cast<unsigned char>(c) <= static_cast<unsigned char>(escape);
        if (low) out += escape;
        out += low ? static_cast<char>(c + 1) : c;
    }
    return out;
}

std::string printed(const char* format, unsigned long long number) {
    std::array<char, 24> text{};
    const int size = std::snprintf(text.data(), text.size(), format, number);
    return {text.data(), static_cast<std::size_t>(size)};
}

std::string ordered(std::int64_t number) {
    constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
    const auto bits = static_cast<std::uint64_t>(number);
    return number < 0 ? "-" + printed("%020llu", bits ^ sign) : printed("%020llu", bits);
}

std::string ordered(double number) {
    if (std::isnan(number)) throw InvalidError("a value that is not a number has no place in an index");
    constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
    const auto bits = std::bit_cast<std::uint64_t>(number + 0.0);  // of two zeros one
    return printed("%016llx", (bits & sign) != 0 ? ~bits : bits ^ sign);
}

template <class Number>
Number load(const void* value) {
    Number number{};
    std::memcpy(&number, value, sizeof number);
    return number;
}

std::int64_t load_signed(const void* value, std::size_t bytes) {
    switch (bytes) {
        case 1: return load<std::int8_t>(value);
        case 2: return load<std::int16_t>(value);
        case 4: return load<std::int32_t>(value);
        default: return load<std::int64_t>(value);
    }
}

std::uint64_t load_unsigned(const void* value, std::size_t bytes) {
    switch (bytes) {
        case 1: return load<std::uint8_t>(value);
        case 2: return load<std::uint16_t>(value);
        case 4: return load<std::uint32_t>(value);
        default: return load<std::uint64_t>(value);
    }
}

std::string enumerator(const json::detail::Type& type, const void* value) {
    const json::detail::Enumeration& enumeration = *type.enumeration;
    const std::int64_t number = enumeration.is_signed ? load_signed(value, type.bytes)
                                                      : static_cast<std::int64_t>(load_unsigned(value, type.bytes));
    for (const Enumerator& candidate : enumeration.enumerators) {
        if (candidate.value == number) return std::string{candidate.name};
    }
    throw InvalidError(std::to_string(number) + " is no named value of " + std::string{enumeration.name});
}

std::string ordered_text(const json::detail::Type& type, const void* value) {
    using json::detail::Kind;
    switch (type.kind) {
        case Kind::boolean: return *static_cast<const bool*>(value) ? "true" : "false";
        case Kind::signed_integer: return ordered(load_signed(value, type.bytes));
        case Kind::unsigned_integer: return printed("%020llu", load_unsigned(value, type.bytes));
        case Kind::floating: return ordered(type.bytes == 4 ? double{load<float>(value)} : load<double>(value));
        case Kind::text: return *static_cast<const std::string*>(value);
        case Kind::time: return ordered(std::int64_t{static_cast<const Time*>(value)->time_since_epoch().count()});
        case Kind::enumeration: return enumerator(type, value);
        default: throw InvalidError("a field without an order has no index");  // does not compile
    }
}

std::string partition_of(const RowTable& table, std::size_t index) {
    return std::string{table.type.name} + "/" + std::string{table.indexes.fields[index].name};
}

std::string sort_of(bool unique, const std::string& value, const store::Key& row) {
    std::string sort = escaped(value) + end_of_value;
    if (unique) return sort;
    sort += escaped(row.partition);
    if (const auto* second = std::get_if<std::string>(&row.sort)) (sort += end_of_value) += escaped(*second);
    return sort;
}

/// For each of the table's indexes, however long; nullopt: the row has no value there.
std::vector<std::optional<std::string>> sorts_of(const RowTable& table, const store::Key& row,
                                                 const std::string& data) {
    std::vector<std::optional<std::string>> sorts = table.indexes.values(row_key(row), data);
    for (std::size_t i = 0; i < sorts.size(); ++i) {
        if (sorts[i]) sorts[i] = sort_of(table.indexes.fields[i].unique, *sorts[i], row);
    }
    return sorts;
}

store::Key entry(const RowTable& table, std::size_t index, std::string sort) {
    return {std::string{index_rows.type.name}, partition_of(table, index), std::move(sort)};
}

}  // namespace

const RowTable index_rows = row_table<IndexEntry>;

std::string name_of_index(const RowTable& table, std::size_t index) {
    return std::string{table.type.name} + "." + std::string{table.indexes.fields[index].name};
}

std::string form_of_index(const IndexedField& field) {
    using json::detail::Kind;
    const json::detail::Type* type = field.type;
    if (type->kind == Kind::optional) type = type->optional->value;
    const auto name = [&]() -> std::string {
        switch (type->kind) {
            case Kind::boolean: return "bool";
            case Kind::floating: return "floating";
            case Kind::text: return "text";
            case Kind::time: return "time";
            case Kind::enumeration: return "enum";
            default: break;
        }
        if (type->unit == nullptr) return "integer";
        return "duration of " + std::to_string(type->unit->numerator) + "/" + std::to_string(type->unit->denominator) +
               " s";
    };
    return (field.unique ? "unique " : "") + name();
}

std::optional<std::string> ordered_value(const json::detail::Type& type, const void* value) {
    if (type.kind != json::detail::Kind::optional) return ordered_text(type, value);
    const void* const held = type.optional->get(value);
    if (held == nullptr) return std::nullopt;
    return ordered_text(*type.optional->value, held);
}

IndexRange entries_between(std::size_t index, const std::optional<std::string>& first,
                           const std::optional<std::string>& last, bool descending) {
    return {.index = index,
            .first = first ? escaped(*first) + end_of_value : std::string{},
            .last = last ? escaped(*last) + after_end : std::string{},
            .descending = descending};
}

IndexRange entries_from(std::size_t index, const TextsFrom& texts) {
    const std::string first = escaped(texts.prefix);
    return {.index = index, .first = first, .last = after_all_with(first), .descending = texts.descending};
}

Entries entries_of(const RowTable& table, const store::Key& row, const std::optional<std::string>& data) {
    Entries entries(table.indexes.fields.size());
    if (!data) return entries;
    const std::vector<std::optional<std::string>> sorts = sorts_of(table, row, *data);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!sorts[i]) continue;
        if (sorts[i]->size() > entry_bytes_max) {
            throw InvalidError("the row " + store::to_string(row) + " takes " + std::to_string(sorts[i]->size()) +
                               " bytes in the index " + name_of_index(table, i) + ", at most " +
                               std::to_string(entry_bytes_max) +
                               " are allowed: its value, and its key unless the index is unique. Index a shorter "
                               "field, such as a hash of this one");
        }
        entries[i] = entry(table, i, *std::move(sorts[i]));
    }
    return entries;
}

Entries entries_left_by(const RowTable& table, const store::Key& row, const std::optional<std::string>& data) try {
    Entries entries(table.indexes.fields.size());
    if (!data) return entries;
    const std::vector<std::optional<std::string>> sorts = sorts_of(table, row, *data);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (sorts[i] && sorts[i]->size() <= entry_bytes_max) entries[i] = entry(table, i, *std::move(sorts[i]));
    }
    return entries;
} catch (const CorruptionError&) {
    return Entries(table.indexes.fields.size());
} catch (const InvalidError&) {  // a number that is none
    return Entries(table.indexes.fields.size());
}

store::Key entry_of_value(const EntryOf& of, const std::string& value, const store::Key& row) {
    return {std::string{index_rows.type.name}, std::string{of.table} + "/" + std::string{of.field},
            sort_of(of.unique, value, row)};
}

store::Key entry_of_unique(const RowTable& table, std::size_t index, const std::string& sort) {
    return entry(table, index, sort);
}

store::Query query_of(const RowTable& table, const IndexRange& range) {
    store::Query query{.table = std::string{index_rows.type.name},
                       .partition = partition_of(table, range.index),
                       .descending = range.descending};
    if (!range.first.empty()) query.first = range.first;
    if (!range.last.empty()) query.last = range.last;
    return query;
}

std::vector<store::Key> rows_named_by(const RowTable& table, const std::vector<StoredRow>& entries) {
    std::vector<store::Key> rows;
    for (const StoredRow& entry : entries)
        rows.push_back(stored_key(table, decode_entry(stored_key(index_rows, entry.key), entry.data)));
    return rows;
}

std::optional<StoredRow> row_in(const IndexRange& range, const RowTable& table, const store::Key& key,
                                std::optional<std::string> data) {
    if (!data) return std::nullopt;
    const auto sort = sorts_of(table, key, *data)[range.index];
    const bool is_in = sort && sort->size() <= entry_bytes_max && (range.first.empty() || *sort >= range.first) &&
                       (range.last.empty() || *sort <= range.last);
    return is_in ? std::optional{StoredRow{row_key(key), *std::move(data)}} : std::nullopt;
}

std::string value_in(const store::Key& entry) {
    const std::string& sort = std::get<std::string>(entry.sort);
    std::string value;
    for (std::size_t i = 0; i < sort.size() && sort[i] != end_of_value; ++i) {
        const bool low = sort[i] == escape && i + 1 < sort.size();
        value += low ? static_cast<char>(sort[++i] - 1) : sort[i];
    }
    return value;
}

std::string encode_entry(const store::Key& row) {
    const RowKey key = row_key(row);
    return json::encode(IndexEntry{key.partition, key.sort});
}

RowKey decode_entry(const store::Key& entry, const std::string& data) {
    IndexEntry found = decode_row<IndexEntry>(row_key(entry), data);
    return {std::move(found.partition), std::move(found.sort)};
}

}  // namespace varve::detail
