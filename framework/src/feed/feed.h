#pragma once

#include "feed/partition.h"

#include <varve/core/clock.h>
#include <varve/events/event.h>
#include <varve/store/item_store.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace varve::feed {

/// Which streams a reader of the feed cares about.
struct Filter {
    std::set<std::string, std::less<>> aggregates = {};  ///< by name; empty: all
    std::set<std::string, std::less<>> types = {};       ///< of events; empty: all
    std::string stream = {};                             ///< only this one; empty: all
    Partition partition = {};                            ///< only the streams in this one
    bool effects = false;                                ///< what is to be done outside the store, in place of events
    bool first_slots = false;  ///< only the first slot of each stream, and these without a gap (Batch::held)
    bool passes_stream(std::string_view stream) const;
    bool passes_version(Version version) const { return !first_slots || version == 1; }
    bool passes(const EventData& event) const { return types.empty() || types.contains(event.type); }
};

/// A piece of the feed.
struct Batch {
    /// In order, with their positions; of whole slots. With Filter::effects it is these, each in the form of an event
    /// with the effect's id.
    std::vector<RecordedEvent> events;
    store::Position end = 0;  ///< up to here everything has been read
    bool is_last = false;     ///< there was nothing more
    /// Of first slots: nothing was read, since a transaction holds this stream's: undecided, or not in place yet.
    std::optional<std::string> held = {};
};

/// All events that were ever committed, in one order, for whoever follows them. Where the store keeps an order of
/// changes, it is that of the events table (ItemStore::changes). Else it is that of the log (log.h), which sequencers
/// write, if commits are announced to them.
///
///     Batch batch = feed.read(0, 500);
///     batch = feed.read(batch.end, 500);       // what came after it
///
/// What it promises:
///  F1 Every committed slot appears once, with all its events, at one position that never changes: where changes have
///     an order, a committed slot is never written again.
///  F2 The slots of a stream appear in the order of versions. Where changes have an order, each slot also appears after
///     all that it was decided on, in whatever stream.
///  F3 What was read is never joined later by something at a smaller position (ItemStore::changes; the condition of
///     append in log.h).
///  F4 An acknowledged command appears without anybody's help. Of one over several streams, some of its slots may do so
///     a moment later: when they are put into place by whoever committed, or by a sweeper or sequencer if that one has
///     died. A slot whose writer has died before it was acknowledged appears too; without an order of changes at the
///     latest when its stream is written again, or a sweeper's scan has come by.
///  F5 Slots that are void or undecided do not appear, nor do streams of the framework's own, except for their effects.
///
/// Threads: all methods may be called from any thread. Errors: those of the store.
class Feed {
  public:
    /// ConfigError for a store without an order of changes where commits are not announced.
    explicit Feed(store::ItemStore& store);

    /// The events of those slots that come after `after`: of at most `slots_max`, or of fewer if they are large.
    /// CorruptionError naming the slot, or the place in the log, if the next one cannot be read.
    Batch read(store::Position after, std::size_t slots_max, const Filter& filter = {}) const;

    /// Where the feed ends now: who has read up to here has seen all that was acknowledged before, as far as it is in
    /// place (F4).
    store::Position end() const;

    /// Waits until what is in these committed slots can be read; of no slots: all that was acknowledged before. Where
    /// somebody else puts slots in order, that is some time after the acknowledgement (F4). False: not before the time
    /// is over.
    bool wait_for(const std::vector<store::Key>& slots, Clock& clock, SteadyTime until) const;

  private:
    Batch read_changes(store::Position after, std::size_t slots_max, const Filter& filter) const;
    Batch read_log(store::Position after, std::size_t slots_max, const Filter& filter) const;

    store::ItemStore& store_;
    const bool logged_;
    mutable std::atomic<store::Position> piece_ends_ = 0;  // of the log: that of the last one that was read
};

}  // namespace varve::feed
