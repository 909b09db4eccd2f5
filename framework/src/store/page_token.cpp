#include <varve/core/error.h>
#include <varve/store/page_token.h>

#include <charconv>
#include <optional>

namespace varve::store {
namespace {

/// Taken off the front of `text`.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

[[noreturn]] void throw_foreign(const TableSchema& schema) {
    throw InvalidError("the continuation `next` belongs to no page of table '" + schema.name + "'");
}

}  // namespace

std::string query_token(const SortKey& last) {
    if (const auto* number = std::get_if<std::int64_t>(&last)) return std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&last)) return *text;
    return {};
}

std::string scan_token(const Key& last) {
    return std::to_string(last.partition.size()) + ':' + last.partition + query_token(last.sort);
}

SortKey sort_of_query_token(const TableSchema& schema, std::string_view token) {
    switch (schema.sort) {
        case SortType::none:
            if (token.empty()) return {};
            break;
        case SortType::text:
            if (!token.empty()) return std::string{token};
            break;
        case SortType::integer:
            if (const auto number = take_number<std::int64_t>(token); number && token.empty()) return *number;
            break;
    }
    throw_foreign(schema);
}

Key key_of_scan_token(const TableSchema& schema, std::string_view token) {
    const auto bytes = take_number<std::size_t>(token);
    if (!bytes || *bytes == 0 || !token.starts_with(':') || *bytes > token.size() - 1) throw_foreign(schema);
    return {.table = schema.name,
            .partition = std::string{token.substr(1, *bytes)},
            .sort = sort_of_query_token(schema, token.substr(1 + *bytes))};
}

}  // namespace varve::store
