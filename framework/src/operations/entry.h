#pragma once

#include <varve/store/item.h>

#include <cstdint>
#include <string>
#include <variant>

namespace varve::operations {

/// How often those who wait are told how far it has come.
inline constexpr std::uint64_t entries_between_progress = 1000;

// What moves from one store to another, as it is in a store where nothing is unsettled. In this order:
//
//     slots      those that followers see, in the order of the feed
//     receipts   slots of "$cmd-…"
//     tables     each with its rows
//     snapshots
//     locks      how far their counters and fences have come: in the new store nobody has any
//     feed       in how many shards commits are announced
//
// Positions in rows (followers, followers.parked) say how many slots of the first section come before. So many are
// before that place in the new store, too: its feed begins with these slots, whatever else is in the table behind them.

/// The item has state, write_id and payload, and nothing that only its transaction's end needs.
struct SlotEntry {
    store::Record slot;
    bool operator==(const SlotEntry&) const = default;
};
struct ReceiptEntry {
    store::Record slot;
    bool operator==(const ReceiptEntry&) const = default;
};
/// Its rows follow.
struct TableEntry {
    std::string name;
    bool sorted = false;
    std::string indexes;  ///< as in the item "rows TABLE" of the table `varve`
    bool operator==(const TableEntry&) const = default;
};
struct RowEntry {
    store::Key key;
    std::string rev;
    std::string data;
    bool operator==(const RowEntry&) const = default;
};
struct SnapshotEntry {
    store::Record snapshot;
    bool operator==(const SnapshotEntry&) const = default;
};
struct CounterEntry {
    std::string lock;
    std::int64_t drawn = 0;
    bool operator==(const CounterEntry&) const = default;
};
struct FenceEntry {
    std::string lock;
    std::int64_t fence = 0;
    bool operator==(const FenceEntry&) const = default;
};
struct FeedEntry {
    unsigned shards = 1;
    bool operator==(const FeedEntry&) const = default;
};

using Entry =
    std::variant<SlotEntry, ReceiptEntry, TableEntry, RowEntry, SnapshotEntry, CounterEntry, FenceEntry, FeedEntry>;

}  // namespace varve::operations
