#pragma once

#include "transactions/claim.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace varve::transactions {

/// A stream's slots are numbered 1, 2, 3 … without holes.
using Version = std::int64_t;

/// The table of all streams: (aggregateId, version).
const store::TableSchema& events_table();
store::Key slot_key(std::string stream, Version version);
Version version_of(const store::Key& slot);

/// For who has lost at `key`: the item and, of a slot, the stream and the version that was decided on.
ConflictDetails lost_at(const store::Key& key);

/// Streams of the framework's own begin with '$': no user's aggregate may.
bool is_internal(std::string_view stream);

/// The attribute of a slot's payload that has what is to be done outside the store (events/stored_slot.h).
inline constexpr const char* effects_attribute = "effects";
/// Whether followers care about a committed slot: one of an aggregate's, or one of the framework's own that has
/// effects. `payload`: or the whole item.
bool is_followed(const store::Key& slot, const store::Item& payload);

// A stored slot, written as attributes of its item; what is in brackets may be missing:
//
//     slot      := void | pending | committed | part
//     void      := state="void" epoch
//     pending   := state="pending" epoch write_id claim (payload | reserved)   (claim.h; write_id = _tx)
//     committed := state="committed" write_id payload [participants | continued] [done]
//     part      := state="part" write_id participants
//     payload   := any attributes with other names                             (events: events/stored_slot.h)
//
// `epoch` of a pending slot is the slot's OWN epoch beneath the claim. `write_id` is unique for every append there ever
// was; the slots of one transaction share its id. `participants`, on a transaction's primary only, is JSON:
// [{"table","partition","version"|"sort"}, …], all the others that the transaction wrote. Where they do not fit into
// one item, `continued` = n says that slots 2 … n + 1 of the stream "$tx-<write_id>" are parts that have them, n lists
// one after the other; a part means nothing unless a primary says so. `done` = 1: all of these have been finalised;
// written only where the store keeps no order of changes, in which the slot would lose its place.
// `reserved` = 1: the slot's payload, if it gets one, is in the primary: attribute "i:name" there is attribute "name"
// of participant i, counted from 0. One without any such attribute becomes void when it is finalised.

/// Nobody has written here. Epoch 0: the item is absent; else it is void(epoch), fenced: whoever expects a smaller
/// epoch can never write here.
struct Free {
    Epoch epoch = 0;
    bool operator==(const Free&) const = default;
};

/// Claimed by a transaction that may yet be undecided.
struct Pending {
    Claim claim;
    Epoch epoch = 0;  ///< the slot's own
    store::Item payload;
    bool reserved = false;
};

/// For ever.
struct Committed {
    std::string write_id;
    store::Item payload;
    std::vector<store::Key> participants = {};
    std::int64_t continued = 0;  ///< how many slots have the participants instead
    bool done = false;
};

/// A piece of a long list of participants, in a slot of the transaction's own.
struct Part {
    std::string write_id;
    std::vector<store::Key> participants;
};

using Slot = std::variant<Free, Pending, Committed, Part>;

std::string encode_participants(const std::vector<store::Key>& keys);
/// CorruptionError naming `key`, where the text was found, for a list that cannot be read.
std::vector<store::Key> decode_participants(const store::Key& key, const std::string& text);

/// In how many slots a list of participants may be continued.
constexpr std::int64_t continued_max = 10'000;

/// Reads a stored slot; nullopt: absent. CorruptionError that names it for a state or a form that this version does not
/// know: an attribute of another type or beyond its range, one too few, or one of another state's.
Slot decode_slot(const store::Key& key, std::optional<store::Item> item);
/// The write_id of a committed slot; nullptr: it is none. Looks at nothing else.
const std::string* committed_by(const store::Item& slot);
/// What a slot must be where a stream goes on, and where a claim is; CorruptionError that names it if it is not.
Free free_slot(const store::Key& key, const Slot& slot);
Pending pending_slot(const store::Key& key, Slot slot);

/// The stream of a transaction's own: "$tx-<tx>".
std::string transaction_stream(const std::string& tx);

// The writes there are. Each is conditional on exactly the state that was read.

/// The condition that a slot is free at exactly this epoch.
store::Condition free_at(Epoch epoch);
store::Condition free_at_any_epoch();

/// free(epoch) → pending: prepare.
store::Write prepare_slot(const store::Key& key, Epoch epoch, const Claim& claim, const store::Item& payload);
/// free(epoch) → committed: a plain append, or the commit of an unprepared primary.
store::Write commit_free_slot(const store::Key& key, Epoch epoch, const Committed& content);
/// pending(by content.write_id) → committed: the commit of a prepared primary.
store::Write commit_pending_slot(const store::Key& key, const Committed& content);
/// absent → part.
store::Write write_part(const store::Key& key, const Part& part);
/// free(epoch) → pending, without a payload: reserve.
store::Write reserve_slot(const store::Key& key, Epoch epoch, const Claim& claim);
/// pending(claim.tx) stays so, with the lease of `claim`: renew.
store::Write renew_slot(const store::Key& key, const Claim& claim);
/// pending(tx) → committed, what it holds stays: finalise.
store::Write finalise_slot(const store::Key& key, const std::string& tx);
/// pending(tx) with its own epoch → void(epoch + 1): undo, and the fence of a prepared primary.
store::Write undo_slot(const store::Key& key, const std::string& tx, Epoch epoch);
/// free(epoch) → void(epoch + 1): the fence of an unprepared primary.
store::Write fence_free_slot(const store::Key& key, Epoch epoch);
/// committed by tx: sets `done`.
store::Write mark_done(const store::Key& key, const std::string& tx);

}  // namespace varve::transactions
