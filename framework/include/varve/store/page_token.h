#pragma once

#include <varve/store/item.h>

#include <string>
#include <string_view>

namespace varve::store {

// Tokens for Page::next, which say where a page ended. For adapters whose engine has none of its own:
//
//     query token := sort key                               (in decimal, or the text itself; of no sort key: empty)
//     scan token  := bytes of partition key ':' partition key [sort key]

std::string query_token(const SortKey& last);
std::string scan_token(const Key& last);

/// The key in a token. InvalidError if the token cannot come from a page of such a table.
SortKey sort_of_query_token(const TableSchema& schema, std::string_view token);
Key key_of_scan_token(const TableSchema& schema, std::string_view token);

}  // namespace varve::store
