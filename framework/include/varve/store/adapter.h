#pragma once

#include <varve/store/item_store.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

// For adapters: the rules of the port that do not depend on the store, and what a write makes of an item.

namespace varve::store {

/// Throws InvalidError if a batch breaks a rule that does not depend on the store: a key named twice, an attribute both
/// set and removed, a Check outside an atomic batch. Adapters call it first.
enum class Batch { independent, atomic };
void check(std::span<const Write> writes, Batch kind);

/// Throws InvalidError if a write's key or attributes do not fit the table, or if it brings more than the limit.
/// Adapters call it for each write before they apply the first.
void check(const TableSchema& schema, const Write& write, std::size_t item_bytes_max);

/// Throws InvalidError if a query's limit is 0, or if its partition and bounds cannot belong to keys of the table.
/// Adapters call it before they query.
void check(const TableSchema& schema, const Query& query);
/// Throws InvalidError if a scan asks for a segment that it does not have, or for nothing.
void check(const TableSchema& schema, const Scan& scan);

/// "the item events/alice/7 has 500000 bytes, at most 409600 are allowed"
std::string too_large(const Key& key, std::size_t item_bytes, std::size_t item_bytes_max);

/// The item that `write` leaves behind when applied to `current`; nullopt: none. For adapters whose engine stores whole
/// items.
std::optional<Item> apply(const Write& write, const Item* current);

}  // namespace varve::store
