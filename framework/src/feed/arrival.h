#pragma once

#include "feed/feed.h"
#include "transactions/slot.h"

#include <map>
#include <string>
#include <vector>

namespace varve::feed {

/// Waits, for those who ask again and again, until what was acknowledged appears in the feed: where slots are put in
/// order by somebody else, that is a moment later.
///
///     Arrival arrival{store, feed, slots};
///     while (!arrival.is_complete()) …        // come by later
///     const store::Position end = feed.end();  // all of it lies before this
///
/// Errors: those of the store. Threads: one at a time.
class Arrival {
  public:
    /// Of these slots; of none: of all that was acknowledged before this.
    Arrival(store::ItemStore& store, const Feed& feed, const std::vector<store::Key>& slots);
    bool is_complete();

  private:
    store::ItemStore& store_;
    std::map<store::Key, transactions::Version> watermarks_;  // that have to be reached
    std::vector<store::Key> bells_;                           // that have to be gone
};

}  // namespace varve::feed
