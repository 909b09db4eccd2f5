#pragma once

#include <varve/rows/rows.h>
#include <varve/store/item_store.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Where the rows of read models are kept: in a table of their own, under "key", or "partition" and "sort". What else an
// item holds: transactions/row.h.

namespace varve::detail {

store::TableSchema schema_of(const RowTable& table);
store::TableSchema schema_of_rows(std::string name, bool sorted);
/// InvalidError for a key that has more or fewer parts than the table's.
store::Key stored_key(const RowTable& table, const RowKey& key);
/// InvalidError for a table without order.
store::Query stored_range(const RowTable& table, const RowRange& range);
/// The smallest text after all that begin with `text`; empty: there is none.
std::string after_all_with(std::string text);

/// One page of what a query finds.
class PageOfRange {
  public:
    /// InvalidError as `continued`.
    PageOfRange(store::Query whole, const PageOptions& page);

    /// What of it begins with the page; not more than `enough` rows of it are needed.
    const store::Query& query() const { return query_; }
    std::size_t enough() const;
    /// `rows` are those found by this query, in order, as far as `stopped_at`.
    StoredPage page(std::vector<StoredRow> rows, std::optional<store::SortKey> stopped_at) const;

  private:
    store::Query query_;
    const std::string list_;
    const std::size_t limit_;
    const std::optional<std::string> after_;
};
RowKey row_key(const store::Key& key);

}  // namespace varve::detail
