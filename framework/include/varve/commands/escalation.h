#pragma once

#include <varve/core/clock.h>

#include <cstdint>

namespace varve {

/// How far a command had to go to get through; each rung includes those before it. Stands in its receipt.
enum class Rung : std::uint8_t {
    at_once,   ///< the first attempt committed, and nobody was in its way
    retried,   ///< it was refused, since others had written first, and decided again on what they wrote
    waited,    ///< it met another transaction, which was still running and older or not yet to be ended, and waited
    queued,    ///< it queued for its aggregates' locks, so that of those who keep losing one goes at a time, in order
    reserved,  ///< it reserved its aggregates by a slot of its own: whoever writes there waits for it
};
const char* to_string(Rung rung) noexcept;

/// What a command does that keeps losing against others. Optimism costs nothing while aggregates are cool; each rung
/// costs more than the one before, and helps against more. Between attempts it sleeps by the RetryPolicy, which also
/// says when to give up; for older transactions it waits wherever it meets them.
struct Escalation {
    /// After how many refused attempts it takes the locks of the aggregates that it has touched so far, in the order of
    /// their names (locks/locks.h). They give an order to those who have come so far; others still write as they
    /// please. Costs 3 writes and 2 queries for each, and 2 writes to give it back.
    unsigned queue_after = 4;
    /// Whoever does not have the locks by then reserves at once. 0: no locks are taken.
    Duration queue_time_max = std::chrono::milliseconds{500};
    /// After how many refused attempts it reserves the aggregates and rows that it has touched before it reads them
    /// (transactions/reservation.h): the older command goes first, and nobody overtakes it. Costs 2 writes for each, and
    /// a slot that stays.
    unsigned reserve_after = 8;
    /// Whoever has been refused so long after it began reserves, too: where the store is far away the attempts are few.
    Duration reserve_after_time = std::chrono::seconds{2};
};

}  // namespace varve
