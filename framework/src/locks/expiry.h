#pragma once

#include "locks/stored_lock.h"
#include "store/sightings.h"

#include <varve/core/clock.h>

namespace varve::locks {

/// Which claims on locks are over. Their expiry was written by another clock, which may be wrong by any amount; so
/// whoever has not renewed a claim for its whole time to live has lost it, whatever it says.
///
/// Threads: all methods may be called from any thread.
class Expiry {
  public:
    /// `time_to_live`: of a claim that does not say its own.
    Expiry(Clock& clock, Duration time_to_live) : clock_(clock), time_to_live_(time_to_live) {}

    /// Whether what was just read under `key`, a place in a queue or a holder's claim, is over: its expiry has passed,
    /// or it was seen unchanged for its time to live.
    bool is_over(const store::Key& key, const Queued& claim);

  private:
    Clock& clock_;
    const Duration time_to_live_;
    store::Sightings sightings_;
};

}  // namespace varve::locks
