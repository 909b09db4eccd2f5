#pragma once

#include <varve/transactions/claim.h>

#include <map>
#include <optional>
#include <string>

namespace varve::transactions {

// A stored row: the committed image in place, the intended one aside.
//
//     row       := [image [_writers]] [claim intent]      (claim.h)
//     image     := data _rev | _rev _expires               (a row that is there; a tombstone)
//     _writers  := {"ID":until, …}                         (JSON; plain writes, until Unix time in seconds)
//     intent    := [_after] [_was_expires]                 (no _after: the transaction deletes the row)
//
// `data` and `_after` are JSON text. `_rev` is the unique id of the last committed write, never reused. `_expires`,
// Unix time in seconds, is when a tombstone may be removed; an intent on a tombstone keeps it as `_was_expires`, lest
// the store's own expiry takes the intent along. A row without an image is one that was absent when the intent was
// laid.
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
    bool operator==(const Intent&) const = default;
};

struct Row {
    Image image;
    std::optional<Intent> intent;
};

/// Reads a stored row; nullopt: absent. CorruptionError for a form that this version does not know.
Row decode_row(const store::Key& key, const std::optional<store::Item>& item);

/// The image that a committed transaction of this intent leaves. `expires`: if it deletes, when the tombstone may go.
Image after_image(const Intent& intent, std::int64_t expires);

/// The condition that a row's committed image is at exactly this revision and that nobody has a claim on it.
store::Condition unclaimed_at(const std::optional<std::string>& rev);

/// Lays an intent aside: prepare. Condition: the image as `seen`, no claim.
store::Write prepare_row(const store::Key& key, const Image& seen, const Claim& claim,
                         const std::optional<std::string>& after);
/// Puts an image into place without any intent. Condition as in prepare. The row keeps its `_writers` if the image has
/// none.
store::Write write_row(const store::Key& key, const Image& seen, const Image& image);
/// The after image into place: finalise. Condition: the claim of `intent` is there.
store::Write finalise_row(const store::Key& key, const Intent& intent, std::int64_t expires);
/// Drops the intent; an absent row becomes absent again: undo. Condition: the claim of `intent` is there.
store::Write undo_row(const store::Key& key, const Image& image, const Intent& intent);
/// Gives the committed image another revision and nothing else, be it claimed or not: a write that expects the revision
/// `rev` can never be applied from then on. Condition: the row is at `rev`.
store::Write fence_row(const store::Key& key, const std::string& rev, const std::string& next);
/// Removes a tombstone. Condition: it is still this one, and nobody has a claim on it.
store::Write remove_tombstone(const store::Key& key, const Image& tombstone);

}  // namespace varve::transactions
