#pragma once

#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <map>
#include <string>
#include <vector>

namespace varve::feed {

/// Says, to those who ask again and again, whether what was acknowledged has appeared in the log (log.h), where
/// somebody else puts it.
///
///     Arrival arrival{store, slots};
///     while (!arrival.is_complete()) …        // come by later
///     const store::Position end = feed.end();  // all of it lies before this
///
/// Errors: those of the store. Threads: one at a time.
class Arrival {
  public:
    /// Of these slots; of none: of all that was acknowledged before this. CorruptionError if the store does not say
    /// where that is announced.
    Arrival(store::ItemStore& store, const std::vector<store::Key>& slots);
    bool is_complete();

  private:
    store::ItemStore& store_;
    std::map<store::Key, transactions::Version> watermarks_;  // that have to be reached
    std::vector<store::Key> bells_;                           // that have to be gone
};

}  // namespace varve::feed
