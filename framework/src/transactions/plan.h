#pragma once

#include "transactions/row.h"
#include "transactions/slot.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace varve::transactions {

/// The slot after the last one of a stream, as read, and what shall stand in it.
struct SlotWrite {
    store::Key key;
    Epoch epoch = 0;  ///< the epoch at which it was found free
    store::Item payload;
};

/// A slot that is held by a reservation of the same transaction (reservation.h).
struct HeldSlot {
    store::Key key;
    Epoch epoch = 0;                     ///< the slot's own
    std::optional<store::Item> payload;  ///< what shall stand in it; nullopt: it was only read, or not needed
};

struct RowWrite {
    store::Key key;
    Image seen;                        ///< the committed image it was decided on
    std::optional<std::string> after;  ///< JSON text; nullopt: delete
    bool held = false;                 ///< by a reservation of the same transaction, at `seen`
};

/// A row that is held by a reservation of the same transaction, at `seen`, and was only read, or not needed.
struct HeldRow {
    store::Key key;
    Image seen;
};

/// A stream that was read and is not written: the slot after its last one must still be free at the commit.
struct HeadRead {
    store::Key next;
};

/// A row that was read and is not written.
struct RowRead {
    store::Key key;
    std::optional<std::string> rev;
};

/// A range of rows that was read: the same rows in the same revisions must be found again.
struct RangeRead {
    store::Query query;                                     ///< with `next` empty; all pages count
    std::vector<std::pair<store::Key, std::string>> found;  ///< key and revision, tombstones' too
};

/// All that one attempt has decided: what it writes, and what it relied on. No key is in two of the lists of single
/// items. The commands make plans out of what a body has done (commands/transaction.h); a Coordinator commits them.
///
///     const StreamRead alice = reader.head("account-alice");          // a SettledReader: it can be built on
///     const StreamRead limits = reader.head("limits-2026");
///     Plan plan;
///     plan.slots.push_back({slot_key("account-alice", alice.head + 1), alice.next.epoch, payload});
///     plan.heads_read.push_back({slot_key("limits-2026", limits.head + 1)});
///     coordinator.commit(plan, tx, since);                            // refused if either stream has moved on
///
/// Threads: a value; while a commit runs on it nobody changes it.
struct Plan {
    std::vector<SlotWrite> slots;
    std::vector<HeldSlot> held;
    std::vector<RowWrite> rows;
    std::vector<HeldRow> rows_held;
    std::vector<HeadRead> heads_read;
    std::vector<RowRead> rows_read;
    std::vector<RangeRead> ranges_read;
    store::Item on_primary;  ///< what is stored with the primary slot besides its own payload, whichever slot that is
    /// Told of each slot that was pending and is finalised now; in the background, after the acknowledgement. Not told
    /// if others finalise it.
    std::function<void(const store::Key& slot)> finalised = {};

    std::size_t writes() const { return slots.size() + held.size() + rows.size() + rows_held.size(); }
    /// Whether a reservation of the same transaction holds something.
    bool is_reserved() const {
        return !held.empty() || !rows_held.empty() || std::ranges::any_of(rows, &RowWrite::held);
    }
    bool validates() const { return !heads_read.empty() || !rows_read.empty() || !ranges_read.empty(); }
};

}  // namespace varve::transactions
