#pragma once

#include "feed/log.h"
#include "store/sightings.h"
#include "transactions/bell.h"
#include "transactions/coordinator.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace varve::feed {

/// Puts what was committed in order, where the store keeps none: follows the bells that stand (transactions/bell.h) to
/// the slots that they announce, and appends these to the log (log.h), each stream from its watermark on. So no slot is
/// in the log twice, none before its predecessor, and none is passed by.
///
/// What it meets undecided it settles when the lease is over, as a sweeper does. A bell whose slot is still free after
/// a lease it ends by a fence: whoever rang it is dead, or will be refused and try again. A bell goes when nothing that
/// it announces can appear any more.
///
/// One at a time is enough, and a lock sees to that. Two at once do no harm: of two pieces for one place the log takes
/// one, and whoever was refused reads anew where the log ends.
///
///     Sequencer sequencer{coordinator};
///     while (sequencer.round()) {}
///
/// A round holds at most 200 bells of all shards together, and beside them what it reads of the streams that they
/// announce: at most 1,000 slots above the watermarks, or 5 of each stream if that is more.
///
/// Threads: one Sequencer belongs to one thread.
class Sequencer {
  public:
    explicit Sequencer(transactions::Coordinator& coordinator)
        : coordinator_(coordinator), store_(coordinator.store()), shards_(coordinator.bell_shards()) {}

    /// Reads the next bells of all shards and does what they ask for; costs about seven round trips, one more where
    /// some shards hold more than others, and some more for many bells where items may be large (in_turn.h). Whether
    /// there may be more to do at once: not when it has been through all shards, nothing came of this round, and none
    /// had too little room for what it met.
    /// Errors: those of the store, after any of which it begins anew.
    bool round();

    /// Slots that it has put into the log.
    std::uint64_t logged() const { return logged_; }

  private:
    /// One that stands, and the slots that it announces.
    struct Standing {
        transactions::Bell bell;
        std::vector<store::Key> slots = {};   ///< once it is known that it has committed
        std::vector<store::Key> listed = {};  ///< of these: claimed before that, as its primary says
        bool is_over = false;                 ///< nothing can appear any more
    };

    struct Shard {
        std::optional<std::string> next = {};  ///< page; nullopt: the one with its first bell
        bool is_through = false;               ///< its end was reached since round() was false
    };

    void begin_anew();
    bool work(std::vector<Standing> bells);
    /// As many of each shard; then, of those that have more, what the others have left of a round's bells: a full one
    /// is not read in small pieces for the sake of many that are empty, nor do these wait for it. Each round begins
    /// with another shard, since the bells of one alone may announce more than a piece of the log takes.
    std::vector<Standing> next_bells();
    /// Adds the next ones of these shards, as many of each, up to a round's bells.
    void read_next(const std::vector<unsigned>& shards, std::vector<store::Record>& bells);
    /// Of shards that others have added.
    void learn_shards(const std::optional<store::Item>& setting);
    void look_at(Standing& standing, std::optional<store::Item> item);
    void read_watermarks(const std::vector<Standing>& bells);
    bool is_logged(const store::Key& slot) const;
    /// What stands above the watermarks of the streams of those that are not in the log yet.
    std::vector<Run> new_runs(const std::vector<Standing>& bells);
    /// The other slots of a transaction: which of them were reserved in vain, and will not appear.
    void look_for_void(const std::vector<Standing>& bells);
    bool settle();
    void append(std::vector<Run> runs);
    void raise(const std::vector<Run>& runs);
    void remove(const std::vector<Standing>& bells);
    /// Whether it has stood for a lease since it was first seen, or last to be fenced.
    bool is_to_be_fenced(const transactions::Bell& bell);
    /// Once for each.
    void report(const std::string& what);

    transactions::Coordinator& coordinator_;
    store::ItemStore& store_;
    store::Sightings sightings_;
    std::optional<store::Position> end_;  // of the log, whose last piece is in the watermarks; nullopt: not known
    std::map<std::string, transactions::Version> watermarks_;  // those known, exactly as long as end_ is
    std::vector<Shard> shards_;
    std::uint64_t rounds_ = 0;
    SteadyTime asks_for_shards_at_ = SteadyTime::min();
    std::uint64_t logged_ = 0;
    std::set<std::string> reported_;

    // Of this round.
    std::map<store::Key, store::Item> claimed_;  // undecided slots
    std::map<store::Key, store::Write> fences_;  // of several bells for one slot, one fence ends all attempts
    std::set<store::Key> void_;                  // committed to nothing
    bool leaves_more_ = false;                   // has_more_, at some round since all shards were begun anew
    bool has_more_ = false;                      // some stream has more above its watermark than was read
};

}  // namespace varve::feed
