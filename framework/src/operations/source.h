#pragma once

#include "feed/log.h"
#include "operations/entry.h"
#include "transactions/slot.h"

#include <varve/core/error.h>
#include <varve/core/retry.h>
#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace varve::operations {

/// Gives entries on; false: it wants no more.
using Sink = std::function<bool(Entry)>;

/// What `read` returns. It is called again, for half a minute, where the store does not answer.
auto patiently(const Runtime& runtime, const auto& read) -> decltype(read()) {
    for (Backoff backoff{RetryPolicy::waiting(std::chrono::seconds{30}), runtime};;) {
        try {
            return read();
        } catch (const Error& error) {
            if (!error.retryable() || !backoff.next()) throw;
        }
    }
}

/// Of what only the end of its transaction will tell the outcome.
[[noreturn]] void throw_unsettled(const store::Key& key);

/// What a slot's item is without that which only the end of its transaction needs.
store::Item item_of(const transactions::Committed& slot);

/// The committed slots that followers see, in their order, a batch at a time.
///
/// Threads: one at a time. Errors: those of the store, which is asked again for half a minute where it does not answer;
/// CorruptionError naming a slot that cannot be read.
class SlotReader {
  public:
    struct Found {
        store::Position position = 0;  ///< in this store
        store::Record slot;
    };

    SlotReader(store::ItemStore& store, Runtime runtime, store::Position after);

    /// The next ones up to position `end`, about a thousand at most; none may come of a batch. False: the end is
    /// reached.
    bool read(store::Position end, std::vector<Found>& found);
    store::Position at() const { return at_; }  ///< up to here all has been read
    /// The first one that is undecided or not in place yet, of those it has come by.
    const std::optional<store::Key>& unsettled() const { return unsettled_; }

    /// Where an order of changes is read: called with each slot of a command's own that is met.
    std::function<void(Found)> receipt = {};

  private:
    bool read_changes(store::Position end, std::vector<Found>& found);
    bool read_log(store::Position end, std::vector<Found>& found);

    store::ItemStore& store_;
    const Runtime runtime_;
    const bool logged_;
    store::Position at_;
    std::deque<std::pair<store::Position, store::Key>> named_;  // by the log, and not read yet
    store::Position log_at_;
    std::optional<store::Key> unsettled_;
};

/// A store that is moved to another one.
///
/// Threads: one at a time. Errors: as SlotReader; ConflictError where something is unsettled.
class Source {
  public:
    /// ConfigError for a store that holds nothing of varve's, whose import is unfinished, or whose events have no
    /// order.
    Source(store::ItemStore& store, Runtime runtime);

    store::ItemStore& store() const { return store_; }
    bool is_ordered() const { return !logged_; }
    /// Where the feed ends now.
    store::Position end() const;

    /// Notes how everything stands, so that `check_quiet` finds what moves from here on.
    void begin_quiet();
    /// ConflictError if anything has moved since.
    void check_quiet();

    /// Those slots that followers see, up to where the feed ended by `begin_quiet`. Of use before `rest`, which then
    /// reads only what there is of receipts.
    bool slots(const Sink& sink);
    /// Receipts, and all that are no slots. False: the sink has had enough. `check_quiet` has to follow, since
    /// positions are counted upon what was read before.
    bool rest(const Sink& sink);
    /// By name; and makes sure that this handle knows them.
    std::vector<TableEntry> tables_of_rows();
    /// Rows, snapshots, locks and the feed's setting alone.
    bool tables(const Sink& sink);

  private:
    /// Places in the feed that rows name, each with the number of slots up to there.
    using Places = std::map<store::Position, std::uint64_t>;

    /// Reads slots from one position to another; all of them, the places are counted on the way.
    bool read(store::Position after, store::Position end, const Sink& slot, const Sink& receipt);
    bool receipts_of_changes(const Sink& sink);
    bool receipts_of_scan(const Sink& sink);
    bool rows(const TableEntry& table, const Sink& sink);
    bool snapshots(const Sink& sink);
    bool locks(const Sink& sink);
    bool setting(const Sink& sink);
    void collect_places();
    std::string translated(const store::Key& row, const std::string& data) const;
    /// Calls `take` with each record; false as soon as that says so.
    bool scan(const std::string& table, const std::function<bool(store::Record)>& take);
    std::map<std::string, store::Position> last_changes();
    void check_bells();

    store::ItemStore& store_;
    const Runtime runtime_;
    const bool logged_;
    struct Receipts {
        store::Position first = 0;  ///< 0: there are none
        store::Position last = 0;
    };
    Places places_;
    std::optional<Receipts> receipts_;                     // where they are, once that is known, and places are counted
    store::Position end_ = 0;                              // of the feed, when it began to be quiet
    std::map<std::string, store::Position> last_changes_;  // of tables, by then; where there is an order
    std::map<std::string, std::uint64_t> sums_;            // of what was read of others, in whatever order
};

}  // namespace varve::operations
