#pragma once

#include "transactions/claim.h"

#include <map>
#include <optional>
#include <string>

namespace varve::transactions {

// A stored row: the committed image in place, the intended one aside.
//
//     row       := [image [_writers]] [claim intent]      (claim.h)
//     image     := data _rev | _rev _expires               (a row that is there; a tombstone)
//     _writers  := {"ID":until, …}                         (JSON; plain writes, until Unix time in seconds)
//     intent    := [_after | _reserved] [_was_expires] [_was_data]     (neither: the transaction deletes the row)
//
// `data` and `_after` are JSON text. `_rev` is the unique id of the last committed write, never reused. `_expires`,
// Unix time in seconds, is when a tombstone may be removed; an intent on a tombstone keeps it as `_was_expires`, lest
// the store's own expiry takes the intent along. `_was_data` is the FNV-1a hash of the `data` beneath, of nothing if
// there is none: as long as the intent is there nobody of this library changes that. A row without an image is one that
// was absent when the intent was laid. `_reserved` = 1: the transaction holds the row and has not said what becomes of
// it; committed so, it leaves the row as it was.
//
// A plain write of a single row has no primary that could tell its outcome. So the row keeps its id for the retention,
// whoever writes the row or deletes it meanwhile: its owner looks for it there when an answer was lost. A row that was
// written before there were such ids has none.

/// The plain writes that a row remembers: by id, the Unix time in seconds until which.
using Writers = std::map<std::string, std::int64_t>;
/// A row that remembers so many takes no further one: who writes it then names a primary.
inline constexpr std::size_t writers_max = 32;

/// A committed image as a reader sees it: absent, a tombstone, or there.
struct Image {
    std::optional<std::string> data = {};      ///< JSON text; nullopt: no such row
    std::optional<std::string> rev = {};       ///< nullopt: never written, or forgotten after its retention
    std::optional<std::int64_t> expires = {};  ///< of a tombstone, Unix time in seconds
    Writers writers = {};                      ///< empty in an image that is only intended
    bool operator==(const Image&) const = default;
};

/// What a transaction is going to make of a row.
struct Intent {
    Claim claim;
    std::optional<std::string> after;         ///< nullopt: delete
    std::optional<std::int64_t> was_expires;  ///< of the tombstone beneath
    bool reserved = false;                    ///< only held: there is no `after`
    bool operator==(const Intent&) const = default;
};

struct Row {
    Image image;
    std::optional<Intent> intent;
};

/// Whether the item is a tombstone that nobody has a claim on.
bool is_tombstone(const store::Item& item);

/// Reads a stored row; nullopt: absent. CorruptionError for a form that this version does not know, and
/// where the data beneath an intent is not what the intent was laid upon.
Row decode_row(const store::Key& key, const std::optional<store::Item>& item);

/// The image that a committed transaction of this intent leaves. `expires`: if it deletes, when the tombstone may go.
Image after_image(const Intent& intent, std::int64_t expires);

/// The condition that a row's committed image is at exactly this revision and that nobody has a claim on it.
store::Condition unclaimed_at(const std::optional<std::string>& rev);

/// Lays an intent aside: prepare. Condition: the image as `seen`, no claim.
store::Write prepare_row(const store::Key& key, const Image& seen, const Claim& claim,
                         const std::optional<std::string>& after);
/// The same without saying what becomes of the row: reserve.
store::Write reserve_row(const store::Key& key, const Image& seen, const Claim& claim);
/// A reserved row's intent becomes a prepared one. Condition: the claim of `tx` is there.
store::Write fill_row(const store::Key& key, const std::string& tx, const std::optional<std::string>& after);
/// The claim of `claim.tx` stays on the row, with the lease of `claim`: renew.
store::Write renew_row(const store::Key& key, const Claim& claim);
/// Puts an image into place without any intent. Condition as in prepare. The row keeps its `_writers` if the image has
/// none.
store::Write write_row(const store::Key& key, const Image& seen, const Image& image);
/// The after image into place: finalise. Condition: the claim of `intent` is there, and the data of `image` beneath.
store::Write finalise_row(const store::Key& key, const Image& image, const Intent& intent, std::int64_t expires);
/// Drops the intent; an absent row becomes absent again: undo. Condition: the claim of `intent` is there.
store::Write undo_row(const store::Key& key, const Image& image, const Intent& intent);
/// The same to what a committed transaction has only held. Condition: besides, that it has not said meanwhile what
/// becomes of the row.
store::Write release_row(const store::Key& key, const Image& image, const Intent& intent);
/// Gives the committed image another revision and nothing else, be it claimed or not: a write that expects the revision
/// `rev` can never be applied from then on. Condition: the row is at `rev`.
store::Write fence_row(const store::Key& key, const std::string& rev, const std::string& next);
/// Removes a tombstone. Condition: it is still this one, and nobody has a claim on it.
store::Write remove_tombstone(const store::Key& key, const Image& tombstone);

}  // namespace varve::transactions
