#pragma once

#include <varve/store/item.h>

#include <string>
#include <string_view>

namespace varve::store {

// Where a page ended, as Page::next says it, for adapters whose engine has no such token of its own:
//
//     query token := sort key                               (in decimal, or the text itself; of no sort key: empty)
//     scan token  := bytes of partition key ':' partition key [sort key]

std::string query_token(const SortKey& last);
std::string scan_token(const Key& last);

/// The key that a token is of. InvalidError if it is of no page of such a table.
SortKey sort_of_query_token(const TableSchema& schema, std::string_view token);
Key key_of_scan_token(const TableSchema& schema, std::string_view token);

}  // namespace varve::store
