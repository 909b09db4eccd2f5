#include "transactions/in_place.h"

#include "transactions/slot.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

namespace varve::transactions {

bool is_in_place(const std::string& tx, const store::Write& write, const store::WriteAnswer& answer) try {
    if (std::holds_alternative<Failure>(answer)) return false;
    const auto* refused = std::get_if<store::Refused>(&answer);
    if (refused == nullptr) return true;
    if (write.key.table != events_table().name) {
        // The images of a row come and go once it was finalised, but something stays of each for a while.
        return refused->current && !store::holds(claimed_by(tx), &*refused->current);
    }
    const Slot slot = decode_slot(write.key, refused->current);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && committed->write_id == tx;
} catch (const CorruptionError&) {
    return false;
}

void check_is_own(const store::Key& slot, const std::optional<store::Item>& found, const std::string& tx) {
    const Slot decoded = decode_slot(slot, found);
    std::string what = " is gone";
    if (const auto* pending = std::get_if<Pending>(&decoded)) {
        if (pending->claim.tx == tx) return;
        what = " is claimed by " + pending->claim.tx;
    } else if (const auto* committed = std::get_if<Committed>(&decoded)) {
        if (committed->write_id == tx) return;
        what = " holds what " + committed->write_id + " wrote";
    } else if (found) {
        what = " was emptied";
    }
    throw CorruptionError("transaction " + tx + " has committed, but its slot " + store::to_string(slot) + what +
                          ": it was changed from outside before it was finalised. It is left as it is; restore the "
                          "slot from a backup");
}

void check_is_there(const store::Key& row, const std::optional<store::Item>& found, const std::string& tx, Time now,
                    Duration retention) {
    const std::optional<Time> began = time_of(tx);
    if (found || !began || *began + retention / 2 <= now) return;
    throw CorruptionError("transaction " + tx + " has committed, but its row " + store::to_string(row) +
                          " is gone: it was erased from outside before it was finalised. Restore it from a backup, or "
                          "write it anew from the events");
}

}  // namespace varve::transactions
