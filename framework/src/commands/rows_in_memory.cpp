#include "commands/rows_in_memory.h"

#include "rows/index_entries.h"
#include "rows/stored_rows.h"

#include <varve/core/error.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace varve::detail {

namespace {

std::size_t bytes_of(const RowKey& key, const std::string& data) {
    constexpr std::size_t node_bytes = 160;
    return node_bytes + key.partition.size() + key.sort.size() + data.size();
}

}  // namespace

RowsInMemory::Table& RowsInMemory::of(const RowTable& table) {
    return tables_.try_emplace(table.type.name, Table{.type = &table, .rows = {}}).first->second;
}

void RowsInMemory::ensure(const RowTable& table) {
    of(table);
}

std::optional<std::string> RowsInMemory::read(const RowTable& table, const RowKey& key) {
    static_cast<void>(stored_key(table, key));  // refuses what cannot be a key of this table
    const auto& rows = of(table).rows;
    const auto found = rows.find(key);
    return found == rows.end() ? std::nullopt : std::optional{found->second};
}

void RowsInMemory::write(const RowTable& table, const RowKey& key, std::optional<std::string> data) {
    static_cast<void>(stored_key(table, key));
    Table& in = of(table);
    in.is_written = true;
    if (notes_) changed_.insert({table.type.name, key});
    if (const auto found = in.rows.find(key); found != in.rows.end()) {
        bytes_ -= bytes_of(key, found->second);
        in.rows.erase(found);
    }
    if (!data) return;
    bytes_ += bytes_of(key, *data);
    if (bytes_ > bytes_max_) {
        throw InvalidError("the rows to compare with take more than the " + std::to_string(bytes_max_) +
                           " bytes of memory that verify may use; allow it more");
    }
    in.rows.emplace(key, std::move(*data));
}

StoredPage RowsInMemory::range(const RowTable& table, const RowRange& range, const PageOptions& options) {
    const PageOfRange page{stored_range(table, range), options};
    const store::Query& query = page.query();
    const auto* first = std::get_if<std::string>(&query.first);
    const auto* last = std::get_if<std::string>(&query.last);
    std::vector<StoredRow> rows;
    const auto& all = of(table).rows;
    for (auto row = all.lower_bound({range.partition, first != nullptr ? *first : std::string{}});
         row != all.end() && row->first.partition == range.partition; ++row) {
        if (last != nullptr && row->first.sort > *last) break;
        rows.push_back({row->first, row->second});
    }
    if (range.descending) std::ranges::reverse(rows);
    return page.page(std::move(rows), std::nullopt);
}

std::optional<StoredRow> RowsInMemory::find(const RowTable& table, const IndexRange& entry) {
    for (const auto& [key, data] : of(table).rows) {
        StoredRow row{key, data};
        if (has_entry_in(entry, table, row)) return row;
    }
    return std::nullopt;
}

StoredPage RowsInMemory::indexed(const RowTable& table, const IndexRange& range, const PageOptions& options) {
    const PageOfRange page{query_of(table, range), options};
    std::vector<StoredRow> entries;
    for (const auto& [key, data] : of(table).rows) {
        if (!has_entry_in(range, table, {key, data})) continue;
        const store::Key row = stored_key(table, key);
        entries.push_back({row_key(*entries_of(table, row, data)[range.index]), encode_entry(row)});
    }
    std::ranges::sort(entries, {}, &StoredRow::key);
    if (range.descending) std::ranges::reverse(entries);
    // What the pages before had.
    if (const auto* first = std::get_if<std::string>(&page.query().first))
        std::erase_if(entries, [&](const StoredRow& entry) { return entry.key.sort < *first; });
    if (const auto* last = std::get_if<std::string>(&page.query().last))
        std::erase_if(entries, [&](const StoredRow& entry) { return entry.key.sort > *last; });
    StoredPage found = page.page(std::move(entries), std::nullopt);
    for (StoredRow& entry : found.rows) {
        const RowKey key = decode_entry(stored_key(index_rows, entry.key), entry.data);
        entry = {key, of(table).rows.at(key)};
    }
    return found;
}

std::size_t RowsInMemory::size() const {
    std::size_t size = 0;
    for (const auto& [name, table] : tables_) size += table.rows.size();
    return size;
}

}  // namespace varve::detail
