#pragma once

#include <varve/core/retry.h>

#include <cstddef>
#include <string>

namespace varve {

/// Which page of a list: the one after the page whose `next` this is, or the first.
struct PageOptions {
    std::size_t limit = 100;  ///< at most so many; more than 0
    std::string next = {};    ///< opaque; from a page of the same list
};

}  // namespace varve

namespace varve::transactions {

struct Metrics;  // metrics.h

/// What a read may see of transactions that run at the same time.
enum class Isolation {
    uncommitted,   ///< raw: also what transactions only intend
    committed,     ///< never an intention; every acknowledged commit. Each item is of its own moment. The default
    snapshot,      ///< all items of one call are of one moment. No writes, no locks; repeats until it has seen one
    serializable,  ///< as part of a transaction: validated as it commits
};

/// How several items are committed.
enum class Strategy {
    automatic,  ///< native where the store has it and the transaction fits, else protocol
    protocol,   ///< the client-side protocol, on any store
};

/// Errors: the Application's constructor refuses what cannot work, with a ConfigError that names the option.
struct Options {
    Strategy strategy = Strategy::automatic;
    /// How long others must have seen a transaction's claim stand still, by their own steady clocks, before they take
    /// its owner for dead. A wrong guess costs a retry. More than 0.
    Duration lease = std::chrono::seconds{5};
    /// How long a deleted row leaves a tombstone, and a row keeps the ids of its plain writes. A request must reach the
    /// store within this time, less the difference between clocks, or never. Clocks may differ by half of it. At least
    /// twice answer_time_max.
    Duration retention = std::chrono::hours{1};
    /// How long one attempt keeps asking a store that does not answer before its outcome is reported as in doubt. More
    /// than 0.
    Duration answer_time_max = std::chrono::seconds{10};
};

/// How fast a sweeper scans a store that keeps no order of changes. Errors: an Application refuses a
/// negative one with ConfigError.
struct ScanOptions {
    /// Between two pages at least, on average; a page is one request and brings at most 500 items. 0: as fast as the
    /// store answers.
    Duration page_interval = std::chrono::milliseconds{200};
    /// Between the end of one scan over all tables and the beginning of the next.
    Duration pause = std::chrono::minutes{1};
};

}  // namespace varve::transactions
