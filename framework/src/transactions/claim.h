#pragma once

#include <varve/core/clock.h>
#include <varve/store/item_store.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::transactions {

/// How often the owner of a slot was changed by force. 0: never, the slot is absent.
using Epoch = std::int64_t;

/// Who goes first of two transactions that wait for each other: the older one. A tie goes to the smaller transaction
/// id. A command keeps its priority over all its attempts, so it grows older until it gets through.
struct Priority {
    Time since;
    std::string tx;

    auto operator<=>(const Priority&) const = default;
};

/// The id of a command's attempt: that of its first for number 1, else with ".NUMBER" behind it. So whoever meets a
/// claim sees whether it is of another attempt of the same command.
std::string attempt_id(const std::string& first, unsigned number);
/// What the ids of all attempts of a command have in common.
std::string_view command_of(std::string_view tx);

/// What an undecided transaction leaves on everything that it is going to write: who it is, and where its outcome
/// stands.
///
/// Stored in the item's own attributes, so that the store's tools show it:
///
///     claim := _tx  _primary  _primary_version  _primary_epoch  _lease  [_lease_length]  _priority
///
/// `_tx` is the transaction's id, `_primary` and `_primary_version` name its primary slot, `_primary_epoch` is the
/// epoch at which that slot must be free for the transaction to commit, `_lease` (until when
/// its owner means to be done or to renew it) and `_priority` are microseconds of Unix time. `_lease_length`, in
/// microseconds, is how long the claim must be seen to stand still before its owner is taken for dead; where it is
/// missing, that is the observer's own option.
struct Claim {
    std::string tx;
    store::Key primary;
    Epoch primary_epoch = 0;
    Time lease;
    Time priority;
    Duration lease_length = {};  ///< 0: not stated

    Priority rank() const { return {priority, tx}; }
    bool operator==(const Claim&) const = default;
};

/// The claim on an item; nullopt if there is none. CorruptionError naming `key` if one of its attributes is missing.
std::optional<Claim> claim_on(const store::Key& key, const store::Item& item);
/// The same where there must be one; CorruptionError that names the item if there is none.
Claim claim_there(const store::Key& key, const store::Item& item);

void put_claim(store::Item& item, const Claim& claim);
void remove_claim(store::Item& item);
/// The names of a claim's attributes, to be removed by an update.
const std::vector<std::string>& claim_attributes();

/// Holds as long as the claim of `tx` is on the item.
store::Condition claimed_by(const std::string& tx);
/// Holds as long as no transaction has a claim on the item.
store::Condition unclaimed();

}  // namespace varve::transactions
