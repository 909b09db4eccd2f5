#pragma once

#include "commands/checkpoint.h"
#include "commands/consumer.h"
#include "commands/parked_row.h"
#include "feed/feed.h"

#include <varve/store/item_store.h>

#include <optional>
#include <vector>

namespace varve {
class Application;
}

namespace varve::detail {

/// What has become of a consumer's checkpoint.
struct Advance {
    Checkpoint checkpoint;              ///< as it is now
    bool is_own = false;                ///< false: somebody else had moved it, and nothing was done
    std::vector<store::Key> rows = {};  ///< that it has read, in order
};

/// A stream that is to be set aside.
struct Aside {
    std::string stream;
    ParkedRow row;
};

/// Where the consumer is; nullopt: it has not been there, and may begin in this transaction (B5 in build.h). Errors:
/// UnavailableError if others keep its build in another way, ConfigError for a subscription that is split otherwise.
std::optional<Checkpoint> checkpoint_of(Transaction& tx, const Consumer& consumer);

/// Runs what the batch causes, as far as it fits into one transaction, and moves the consumer's checkpoint in the same
/// one: so each event takes effect once, however many are at it. Does nothing if the checkpoint is not as `left`.
/// `aside`: streams that are set aside in the same transaction. `likely`: rows that it is going to read, as far as that
/// is known; they are read in one round trip. Errors: those of Application::transact, and what the projection throws.
Advance advance(Application& application, const Consumer& consumer, const Checkpoint& left, const feed::Batch& batch,
                const std::vector<Aside>& aside = {}, const std::vector<store::Key>& likely = {});

}  // namespace varve::detail
