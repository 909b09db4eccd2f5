#pragma once

#include <varve/core/clock.h>
#include <varve/core/mutex.h>
#include <varve/store/item_store.h>

#include <cstddef>
#include <map>
#include <string>

namespace varve::store {

/// Since when what others have written on items stands as this process has last seen it. Who writes until when a claim
/// of his holds does so by a clock that may be wrong by any amount, and may be set back; but as long as he lives, he
/// writes it anew. So a claim is judged by how long it was seen to stand still, on the observer's own steady clock.
///
///     if (clock.steady_now() - sightings.since(key, claim, clock.steady_now()) >= lease) …  // its owner is dead
///
/// What was met longest ago is forgotten where there is too much of it, and counts as met anew.
///
/// Threads: all methods may be called from any thread.
class Sightings {
  public:
    /// When `claim`, as it stands on the item under `key`, was first met there: `now`, if that is here. `claim` is
    /// whatever its owner changes while it lives.
    SteadyTime since(const Key& key, std::string claim, SteadyTime now);

  private:
    static constexpr std::size_t recent_max = 10'000;

    struct Sighting {
        std::string claim;
        SteadyTime since;
    };

    Mutex mutex_;
    std::map<Key, Sighting> recent_ VARVE_GUARDED_BY(mutex_);
    std::map<Key, Sighting> before_
        VARVE_GUARDED_BY(mutex_);  // what was not met again while `recent_` filled is dropped
};

}  // namespace varve::store
