#pragma once

#include "feed/log.h"
#include "operations/entry.h"

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace varve::operations {

/// How far a store has been filled: what its source calls the place, and what stands there.
struct Mark {
    std::uint64_t at = 0;
    std::string what = {};
    std::uint64_t slots = 0;  ///< up to there
    bool rest = false;        ///< what is no slot may be stored, too: a slot that came now might get a place behind it
    bool operator==(const Mark&) const = default;
};

/// The item "import" of a store; CorruptionError if it is in a form that is not known.
Mark decode_mark(const store::Record& record);

/// A new store, that is filled with entries in their order.
///
/// Two items of the table `varve` tell of it:
///
///     "format" := unfinished            while it is filled: no application opens it
///     "import" := id at what slots [rest]
///
/// `unfinished` is the id of what it is filled with, a blank, and an id of the run that does so. A later run takes its
/// place there, and the earlier one writes no more.
///
/// Where the store keeps an order of changes, slots and the mark behind them are one atomic write, so each slot gets
/// the position that follows the one before it. Elsewhere slots are written first, then named by the log, then the mark
/// is: whoever goes on from a mark does no harm by repeating what comes behind it. Every write expects that nothing is
/// there, so a late copy of it changes nothing.
///
/// Threads: one at a time. Errors: those of the store, which is asked again for a while where it does not answer;
/// ConflictError if there is what nobody but another writer can have written.
class Target {
  public:
    /// What becomes of rows, snapshots and locks that are there and are others.
    enum class Existing { refuse, replace };

    /// Begins, or goes on. ConfigError if the store is not empty, or is filled with something else.
    Target(store::ItemStore& store, Runtime runtime, std::string id, Existing existing);

    store::ItemStore& store() const { return store_; }
    /// It was complete before this.
    bool was_done() const { return was_done_; }
    const Mark& mark() const { return mark_; }  ///< up to here it is stored

    /// `mark.slots` and `mark.rest` need not be set. ConflictError for a slot behind what is none, where that would get
    /// it another place than it has in the source.
    void add(Entry entry, Mark mark);
    /// Of an entry that is stored already: its table may be written to again.
    void pass_by(const Entry& entry);
    /// ConflictError if a later run has taken over.
    void check_is_mine();
    void flush();
    /// Lets applications in. `receipts`: how many were added, with those before the mark.
    void complete(std::uint64_t receipts);

    /// The same changes for whoever makes them by himself: applied, or there already.
    void write(std::vector<store::Write> writes);

  private:
    void begin();
    void begin_here();
    void take_over(const store::Item& format);
    void begin_rest();
    void write_with_mark(const Mark& next);
    void put_in_log();
    void write_mark(const Mark& next);
    store::Write mark_write(const Mark& next) const;
    store::Item mark_item(const Mark& mark) const;
    /// Makes of a refused write the one that is to be tried instead. False: none is.
    using Again = std::function<bool(store::Write&, const std::optional<store::Item>&)>;
    void write_all(std::vector<store::Write> writes, const Again& again);

    store::ItemStore& store_;
    const Runtime runtime_;
    const std::string id_;
    const std::string run_;
    const Existing existing_;
    const bool ordered_;
    const std::size_t atomic_max_;  // 0: slots and their mark are not one write
    bool was_done_ = false;
    Mark mark_;

    // What is not stored yet.
    std::vector<store::Write> writes_;
    bool are_slots_ = false;
    std::size_t bytes_ = 0;
    Mark next_;
    store::Position log_end_ = 0;
};

/// Holds of this very item.
store::Condition is_exactly(const store::Item& item);

/// As stored: of a receipt and a slot its record, of a row its image, and so on; none of a table and a setting.
std::optional<store::Record> record_of(const Entry& entry);

}  // namespace varve::operations
