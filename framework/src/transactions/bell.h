#pragma once

#include "transactions/slot.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::transactions {

// Where a store keeps no order of changes, nobody would see a new slot without reading all streams. There each commit
// rings a bell, beside the write that may commit: an item that names the slot which decides. Whoever puts slots in
// order (feed/sequencer.h) reads the bells that stand, and removes one when nothing can appear any more that it
// announces. So what is acknowledged is in the log, or a bell stands that leads to it.
//
// A bell is one attempt's at one epoch: `feed_bells`, ("0", name), with
//
//     bell := stream version epoch [beside]
//
// the slot that commits and the epoch at which it was expected to be free. The other slots of a transaction are found
// in what is committed there; those of an atomic request, which leaves no list, are in `beside`, as a list of
// participants. They mean something only if this very attempt has committed; then all of them appear, but a store that
// shows the parts of an atomic request one by one may show some a moment later. An attempt that meets another epoch
// rings anew: a late copy of the first bell must not take the place of the second.

const store::TableSchema& bells_table();

/// The only partition so far of the tables that belong to the feed.
inline constexpr const char* feed_shard = "0";

struct Bell {
    std::string name;  ///< no two different ones have the same
    store::Key slot;
    Epoch epoch = 0;
    std::vector<store::Key> beside = {};
};

/// That of attempt `tx` whose primary is `slot`.
Bell bell_of(const std::string& tx, store::Key slot, Epoch epoch);
/// That which others ring for `slot`, which `tx` has committed, where its owner may have died before it could.
Bell bell_for(const std::string& tx, store::Key slot);

/// The attempt that it announces.
std::string_view tx_of(const Bell& bell);

/// Rings it, or once more.
store::Write ring(const Bell& bell);
/// Removes it as it was read.
store::Write remove_bell(const Bell& bell);
/// CorruptionError naming the item if it is none.
Bell decode_bell(const store::Key& key, const store::Item& item);

// How much of a stream is in the log says its watermark: `feed_marks`, (stream) → version. It only grows.

const store::TableSchema& watermarks_table();
store::Key watermark_key(std::string stream);
/// 0: nothing of the stream is in the log.
Version watermark(const store::Key& key, const std::optional<store::Item>& item);
store::Write raise_watermark(std::string stream, Version version);

// Whether commits are announced is said once for a store, in the item "feed" of the table `varve`, so that all
// processes agree.

/// As the store says. False where it has not been decided, and where it keeps an order of changes, which need not be
/// announced.
bool are_commits_announced(store::ItemStore& store);
/// Decides for a store where it is open: `wanted`, or else yes. From no to yes it can be changed: what was committed
/// before is found by the sweepers' scans. Returns what holds now. ConfigError if the store says yes and `wanted` no.
bool decide_on_announcing(store::ItemStore& store, std::optional<bool> wanted);

}  // namespace varve::transactions
