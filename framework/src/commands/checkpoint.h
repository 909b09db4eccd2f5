#pragma once

#include <varve/core/clock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve::detail {

/// How far a follower has come: a row under its name, in a table of the framework's own. It moves in the transaction
/// that has the effects of what lies before it.
struct Checkpoint {
    static constexpr std::string_view table = "followers";
    std::int64_t position = 0;  ///< in the feed: everything up to here has been taken
    std::int64_t events = 0;    ///< taken so far
    std::optional<Time> last;   ///< when the last of them was decided
    std::int64_t parked = 0;    ///< streams that are set aside (parked_row.h); what they have up to here was not taken
    std::int64_t retries = 0;   ///< how often one of these was taken up again: its owner has to look which
    std::string error;          ///< why the last owner has stopped; empty: it has not

    /// Whether nobody else has changed it: not a later owner, nor who took up a stream.
    bool is_as(const Checkpoint& left) const { return position == left.position && retries == left.retries; }
    /// CorruptionError if the events end before it; `whose` it is, to begin with.
    void check(const std::string& whose, std::uint64_t end) const;
};

}  // namespace varve::detail
