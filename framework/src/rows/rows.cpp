#include "rows/stored_rows.h"
#include "transactions/paging.h"

#include <varve/core/error.h>

#include <limits>
#include <utility>

namespace varve::detail {

store::TableSchema schema_of(const RowTable& table) {
    return schema_of_rows(std::string{table.type.name}, table.sorted);
}

store::TableSchema schema_of_rows(std::string name, bool sorted) {
    return {.name = std::move(name),
            .partition_attribute = sorted ? "partition" : "key",
            .sort_attribute = sorted ? "sort" : "",
            .sort = sorted ? store::SortType::text : store::SortType::none,
            .expiry_attribute = "_expires"};
}

store::Key stored_key(const RowTable& table, const RowKey& key) {
    store::Key stored{std::string{table.type.name}, key.partition};
    if (table.sorted == key.sort.empty()) {
        throw InvalidError("a row of '" + stored.table + "' has " +
                           (table.sorted ? "a key of two parts; the second is missing" : "a key of one part, not two"));
    }
    if (table.sorted) stored.sort = key.sort;
    return stored;
}

store::Query stored_range(const RowTable& table, const RowRange& range) {
    store::Query query{
        .table = std::string{table.type.name}, .partition = range.partition, .descending = range.descending};
    if (!table.sorted) {
        throw InvalidError("rows of '" + query.table +
                           "' have no order; declare 'static constexpr bool sorted = true'");
    }
    if (!range.first.empty()) query.first = range.first;
    if (!range.last.empty()) query.last = range.last;
    return query;
}

std::string after_all_with(std::string text) {
    const auto is_within = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    while (!text.empty()) {
        std::size_t at = text.size() - 1;
        while (at > 0 && is_within(text[at])) --at;
        char32_t point = static_cast<unsigned char>(text[at]);
        const std::size_t bytes = text.size() - at;
        if (bytes > 1) point &= 0x7FU >> bytes;
        for (std::size_t i = at + 1; i < text.size(); ++i)
            point = (point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
        text.resize(at);
        if (point >= 0x10FFFF) continue;
        point = point == 0xD7FF ? 0xE000 : point + 1;
        const auto more = [&](unsigned shift) { text += static_cast<char>(0x80U | ((point >> shift) & 0x3FU)); };
        if (point < 0x80) {
            text += static_cast<char>(point);
        } else if (point < 0x800) {
            text += static_cast<char>(0xC0U | (point >> 6U));
            more(0);
        } else if (point < 0x10000) {
            text += static_cast<char>(0xE0U | (point >> 12U));
            more(6);
            more(0);
        } else {
            text += static_cast<char>(0xF0U | (point >> 18U));
            more(12);
            more(6);
            more(0);
        }
        return text;
    }
    return text;
}

namespace {

std::string name_of(const store::Query& query) {
    const auto bound = [](const store::SortKey& sort) {
        const auto* text = std::get_if<std::string>(&sort);
        return text != nullptr ? "'" + *text + "'" : std::string{"its end"};
    };
    return "the range of " + query.table + "/" + query.partition + " from " + bound(query.first) + " to " +
           bound(query.last) + (query.descending ? ", descending" : "");
}

}  // namespace

PageOfRange::PageOfRange(store::Query whole, const PageOptions& page)
    : query_(std::move(whole)),
      list_(name_of(query_)),
      limit_(page.limit),
      after_(transactions::continued(list_, page)) {
    if (!after_) return;
    const bool is_within = !after_->empty() && (query_.first.index() == 0 || query_.first <= store::SortKey{*after_}) &&
                           (query_.last.index() == 0 || store::SortKey{*after_} <= query_.last);
    if (!is_within) transactions::throw_foreign_token(list_, page);
    (query_.descending ? query_.last : query_.first) = *after_;
}

std::size_t PageOfRange::enough() const {
    return after_ && limit_ < std::numeric_limits<std::size_t>::max() ? limit_ + 1 : limit_;
}

StoredPage PageOfRange::page(std::vector<StoredRow> rows, std::optional<store::SortKey> stopped_at) const {
    if (after_) std::erase_if(rows, [&](const StoredRow& row) { return row.key.sort == *after_; });
    if (rows.size() > limit_) {
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(limit_), rows.end());
        stopped_at = rows.back().key.sort;
    }
    const bool goes_on = stopped_at.has_value();
    return {
        .rows = std::move(rows),
        .next = transactions::token(list_, goes_on ? std::optional{std::get<std::string>(*stopped_at)} : std::nullopt)};
}

RowKey row_key(const store::Key& key) {
    RowKey row{key.partition};
    if (const auto* sort = std::get_if<std::string>(&key.sort)) row.sort = *sort;
    return row;
}

void throw_unreadable_row(const RowTable& table, const RowKey& key, const std::string& why) {
    throw CorruptionError("the row " + store::to_string(stored_key(table, key)) + " cannot be read: " + why);
}

}  // namespace varve::detail
