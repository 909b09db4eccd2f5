#pragma once

#include <varve/core/retry.h>

namespace varve::transactions {

/// How several items are committed.
enum class Strategy {
    automatic,  ///< native where the store has it and the transaction fits, else protocol
    protocol,   ///< the client-side protocol, on any store
};

/// Errors: a Coordinator's constructor refuses what cannot work, with a ConfigError that names the option.
struct Options {
    Strategy strategy = Strategy::automatic;
    /// How long a process must have seen a transaction's claim stand still before it takes the owner for dead, on its own
    /// steady clock; and how long an attempt waits for others. Misjudged, it costs a retry. More than 0.
    Duration lease = std::chrono::seconds{5};
    /// How long a deleted row leaves a tombstone. No request may reach the store later than this after it was sent; all
    /// of an attempt's retries end well before. At least answer_time_max.
    Duration retention = std::chrono::hours{1};
    /// How long one attempt keeps asking a store that does not answer before its outcome is reported as in doubt. More
    /// than 0.
    Duration answer_time_max = std::chrono::seconds{10};
};

/// How fast a sweeper scans a store that keeps no order of changes (sweeper.h). Errors: an Application refuses a
/// negative one with ConfigError.
struct ScanOptions {
    /// Between two pages at least, on average; a page is one request and brings at most 500 items. 0: as fast as the
    /// store answers.
    Duration page_interval = std::chrono::milliseconds{200};
    /// Between the end of one scan over all tables and the beginning of the next.
    Duration pause = std::chrono::minutes{1};
};

}  // namespace varve::transactions
