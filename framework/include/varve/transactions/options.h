#pragma once

#include <varve/core/retry.h>

namespace varve::transactions {

/// How several items are committed.
enum class Strategy {
    automatic,  ///< native where the store has it and the transaction fits, else protocol
    protocol,   ///< the client-side protocol, on any store
};

struct Options {
    Strategy strategy = Strategy::automatic;
    /// How long after its beginning a transaction may be taken for dead by others. Misjudged, it costs a retry.
    Duration lease = std::chrono::seconds{5};
    /// How long a deleted row leaves a tombstone. No request may reach the store later than this after it was sent; all
    /// of an attempt's retries end well before.
    Duration retention = std::chrono::hours{1};
    /// After how many refused attempts a command reserves its streams before it reads them (reservation.h).
    unsigned escalate_after = 8;
    /// How long one attempt keeps asking a store that does not answer before its outcome is reported as in doubt.
    Duration answer_time_max = std::chrono::seconds{10};
};

}  // namespace varve::transactions
