#pragma once

#include "transactions/bell.h"

#include <varve/store/item_store.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::feed {

// The order of all committed slots, where the store keeps none of its own: written by sequencers (sequencer.h), read by
// the feed.
//
//     feed_log ("0", first) → slots    a piece of the log: places first, first + 1 … are those of these slots
//
// `slots` is JSON, [{"stream":"account-alice","first":3,"last":5}, …]: its versions 3 to 5.
// A piece begins where the one before it has ended, so a second one at the same place is refused, and a gap is damage.

/// Versions of one stream, in order, without holes.
struct Run {
    std::string stream;
    transactions::Version first = 1;
    transactions::Version last = 1;

    std::size_t size() const { return static_cast<std::size_t>(last - first + 1); }
    bool operator==(const Run&) const = default;
};

struct LogItem {
    store::Position first = 1;  ///< the place of its first slot
    std::vector<Run> runs;      ///< never empty
    store::Position last() const;
};

/// Slots in one item, at most: what a reader has to go through for one of them.
constexpr std::size_t slots_in_item_max = 1000;
/// Of the list of slots in one item, at most, as it is stored.
constexpr std::size_t log_item_bytes_max = std::size_t{64} << 10;
/// What a run takes of that, at most.
std::size_t stored_bytes(const Run& run);

void ensure_log_tables(store::ItemStore& store);
bool is_log_table(std::string_view table);

/// Only where nothing is.
store::Write append(const LogItem& item);
const store::TableSchema& log_table();
/// Whose items are all of the log, in its order.
store::Query whole_log();
/// CorruptionError for one that cannot be read.
LogItem decode_log_item(const store::Record& record);
/// The last one; nullopt: the log is empty. CorruptionError for one that cannot be read.
std::optional<LogItem> last_item(store::ItemStore& store);
/// Those from place `at` on, beginning with the one that has it, as many as one request brings; none: the log ends
/// before. `begins_one`: a piece is known to begin there. CorruptionError for a gap, and for what cannot be read.
std::vector<LogItem> items_from(store::ItemStore& store, store::Position at, bool begins_one);

}  // namespace varve::feed
