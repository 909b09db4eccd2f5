#pragma once

#include <varve/core/clock.h>
#include <varve/store/item_store.h>

#include <optional>
#include <string>

// Whether what a committed transaction has prepared came to its place. Nobody of this library takes it from there
// before, so where it did not, the store was changed from outside.

namespace varve::transactions {

/// Whether this write of transaction `tx`, a finalise, is done with: applied, or refused because somebody was faster.
bool is_in_place(const std::string& tx, const store::Write& write, const store::WriteAnswer& answer);

/// A participating slot is its transaction's own for ever, from before it committed. CorruptionError if `found`, what
/// is there, is not: names slot, transaction, and what is there instead.
void check_is_own(const store::Key& slot, const std::optional<store::Item>& found, const std::string& tx);

/// A participating row leaves a tombstone at least, which stays for the retention. CorruptionError that names row and
/// transaction if nothing is `found` there `now`, within half of the retention: no difference between clocks explains
/// it. Later nobody can tell.
void check_is_there(const store::Key& row, const std::optional<store::Item>& found, const std::string& tx, Time now,
                    Duration retention);

}  // namespace varve::transactions
