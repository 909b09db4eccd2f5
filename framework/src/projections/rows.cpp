#include <varve/core/error.h>
#include <varve/projections/rows.h>

namespace varve::detail {

store::TableSchema rows_table(std::string_view name, bool sorted) {
    return {.name = std::string{name},
            .partition_attribute = sorted ? "partition" : "key",
            .sort_attribute = sorted ? "sort" : "",
            .sort = sorted ? store::SortType::text : store::SortType::none,
            .expiry_attribute = "_expires"};
}

store::Key row_key(std::string_view table, bool sorted, const RowKey& key) {
    store::Key stored{std::string{table}, key.partition};
    if (sorted == key.sort.empty()) {
        throw InvalidError("a row of '" + std::string{table} + "' has " +
                           (sorted ? "a key of two parts; the second is missing" : "a key of one part, not two"));
    }
    if (sorted) stored.sort = key.sort;
    return stored;
}

store::Query row_query(std::string_view table, bool sorted, const RowRange& range) {
    if (!sorted) {
        throw InvalidError("rows of '" + std::string{table} +
                           "' have no order; declare 'static constexpr bool sorted = true'");
    }
    store::Query query{.table = std::string{table}, .partition = range.partition, .descending = range.descending};
    if (!range.first.empty()) query.first = range.first;
    if (!range.last.empty()) query.last = range.last;
    return query;
}

RowKey row_key(const store::Key& key) {
    RowKey row{key.partition};
    if (const auto* sort = std::get_if<std::string>(&key.sort)) row.sort = *sort;
    return row;
}

void throw_unreadable_row(const store::Key& key, const std::string& why) {
    throw CorruptionError("the row " + store::to_string(key) + " cannot be read: " + why);
}

}  // namespace varve::detail
