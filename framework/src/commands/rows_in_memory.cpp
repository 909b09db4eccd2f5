#include "commands/rows_in_memory.h"

#include "rows/index_entries.h"
#include "rows/stored_rows.h"

#include <varve/core/error.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace varve::detail {

namespace {

std::size_t bytes_of(const RowKey& key, std::string_view data = {}) {
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
    return found == rows.end() ? std::nullopt : std::optional{found->second.data};
}

void RowsInMemory::write(const RowTable& table, const RowKey& key, std::optional<std::string> data) {
    static_cast<void>(stored_key(table, key));
    Table& in = of(table);
    in.is_written = true;
    if (notes_ && changed_.insert({table.type.name, key}).second) {
        changed_bytes_ += bytes_of(key);
        take(bytes_of(key));
    }
    const auto found = in.rows.find(key);
    if (found != in.rows.end()) bytes_ -= bytes_of(key, found->second.data);
    if (data) {
        take(bytes_of(key, *data));
        (found != in.rows.end() ? found->second : in.rows[key]).data = std::move(*data);
    } else if (found != in.rows.end()) {
        in.rows.erase(found);
    }
}

void RowsInMemory::take(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= bytes_max_) return;
    throw InvalidError("the rows to compare with take more than the " + std::to_string(bytes_max_) +
                       " bytes of memory that verify may use; allow it more");
}

void RowsInMemory::note_changes() {
    notes_ = true;
    changed_.clear();
    bytes_ -= std::exchange(changed_bytes_, 0);
}

StoredPage RowsInMemory::range(const RowTable& table, const RowRange& range, const PageOptions& options) {
    const PageOfRange page{stored_range(table, range), options};
    const store::Query& query = page.query();
    const auto* first = std::get_if<std::string>(&query.first);
    const auto* last = std::get_if<std::string>(&query.last);
    const auto& all = of(table).rows;
    auto begin = all.lower_bound({range.partition, first != nullptr ? *first : std::string{}});
    // A key that follows all of the partition: no partition has a NUL at its end.
    auto end = last != nullptr ? all.upper_bound({range.partition, *last})
                               : all.lower_bound({range.partition + '\0', std::string{}});
    if (first != nullptr && last != nullptr && *last < *first) end = begin;
    std::vector<StoredRow> rows;
    // One more than are needed tells that there are more.
    while (begin != end && rows.size() <= page.enough()) {
        const auto& [key, row] = range.descending ? *--end : *begin++;
        rows.push_back({key, row.data});
    }
    return page.page(std::move(rows), std::nullopt);
}

std::optional<StoredRow> RowsInMemory::find(const RowTable& table, const IndexRange& entry) {
    for (const auto& [key, in] : of(table).rows) {
        if (std::optional<StoredRow> row = row_in(entry, table, stored_key(table, key), in.data)) return row;
    }
    return std::nullopt;
}

StoredPage RowsInMemory::indexed(const RowTable& table, const IndexRange& range, const PageOptions& options) {
    const PageOfRange page{query_of(table, range), options};
    std::vector<StoredRow> entries;
    for (const auto& [key, in] : of(table).rows) {
        const store::Key row = stored_key(table, key);
        if (!row_in(range, table, row, in.data)) continue;
        entries.push_back({row_key(*entries_of(table, row, in.data)[range.index]), encode_entry(row)});
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
        entry = {key, of(table).rows.at(key).data};
    }
    return found;
}

std::size_t RowsInMemory::size() const {
    std::size_t size = 0;
    for (const auto& [name, table] : tables_) size += table.rows.size();
    return size;
}

}  // namespace varve::detail
