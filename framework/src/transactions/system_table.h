#pragma once

#include <varve/store/item_store.h>

#include <string>
#include <string_view>

namespace varve::transactions {

/// The table `varve`: what the framework keeps about itself. Items by name:
///
///     "format"          varve_format: the version of all stored forms, an integer; or unfinished: the id of the import
///                       or copy that fills this store
///     "import"          how far that one has come (operations/target.h)
///     "sweeper/TABLE"   position: up to here the table's changes hold nothing unsettled
///     "feed"            announced: 1 if commits are announced (bell.h), 0 if not; shards: in how many; absent: 1
///     "collector/TABLE" position: up to here they hold no tombstone
const store::TableSchema& system_table();

/// The stored forms that this program reads and writes.
inline constexpr std::int64_t format_version = 1;

/// The item "rows TABLE": how a table keeps rows (commands/index_catalogue.h).
inline constexpr std::string_view rows_prefix = "rows ";
store::Key rows_key(std::string_view table);

/// The item "OF/TABLE", where OF is "sweeper" or "collector".
store::Key checkpoint_key(const char* of, const std::string& table);
/// Of the item "format", in place of the version, while the store is being filled.
inline constexpr const char* unfinished_attribute = "unfinished";

/// Writes the format's version into a new store, or makes sure that it is the one this program knows. ConfigError if
/// not.
void check_format(store::ItemStore& store);

}  // namespace varve::transactions
