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
// A bell is one attempt's at one epoch: `feed_bells`, (shard, name), with
//
//     bell := stream version epoch [beside]
//
// the slot that commits and the epoch at which it was expected to be free. The other slots of a transaction are found
// in what is committed there; those of an atomic request, which leaves no list, are in `beside`, as a list of
// participants. They mean something only if this very attempt has committed. An attempt that meets another epoch rings
// anew: a late copy of the first bell must not take the place of the second.
//
// A shard, "0", "1", …, is a partition of that table: a store may take only so many writes a second in one. A bell is
// in that of its name's hash, and is looked for in all. So who knows fewer of them, since others have added some, rings
// where it is heard as well; and the same bell in two shards is two bells for one slot, as those of two attempts are.

const store::TableSchema& bells_table();

/// Shards of a store, at most.
inline constexpr unsigned bell_shards_max = 64;
/// The bells that stand in shard `number`, 0 being the first.
store::Query bells_in(unsigned number);

struct Bell {
    std::string name;   ///< no two different ones have the same
    std::string shard;  ///< where it stands
    store::Key slot;
    Epoch epoch = 0;
    std::vector<store::Key> beside = {};
};

/// That of attempt `tx` whose primary is `slot`, in one of so many shards.
Bell bell_of(const std::string& tx, store::Key slot, Epoch epoch, unsigned shards);
/// That which others ring for `slot`, which `tx` has committed, where its owner may have died before it could.
Bell bell_for(const std::string& tx, store::Key slot, unsigned shards);

/// The attempt that it announces.
std::string_view tx_of(const Bell& bell);

store::Key bell_key(const Bell& bell);
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

// Whether commits are announced, and in how many shards, is said once for a store, in the item "feed" of the table
// `varve`, so that all processes agree. From no to yes it can be changed: what was committed before is found by the
// sweepers' scans. The number of shards can only grow, since bells may stand in each.

store::Key feed_setting_key();
/// What the item under that key says: the number of shards, or 0: commits are not announced. nullopt: it is open.
std::optional<unsigned> decode_bell_shards(const std::optional<store::Item>& setting);
/// The same where commits are known to be announced: CorruptionError if it does not say in how many shards.
unsigned announced_bell_shards(const std::optional<store::Item>& setting);
/// As the store says now. 0, too, where that is open, and where the store keeps an order of changes, which need not be
/// announced.
unsigned read_bell_shards(store::ItemStore& store);

/// What an application wants of it; nullopt: as the store says, else yes, with one shard.
struct WantedBells {
    std::optional<bool> announced = {};
    std::optional<unsigned> shards = {};  ///< 1 to bell_shards_max; means nothing where commits are not announced
};
/// Decides for a store what is open there, or can be changed. Returns what holds now, as read_bell_shards. ConfigError
/// if the store says yes and `wanted` no, and if it has more shards than are wanted.
unsigned decide_on_bells(store::ItemStore& store, const WantedBells& wanted);

}  // namespace varve::transactions
