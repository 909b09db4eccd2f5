#pragma once

#include <varve/core/clock.h>
#include <varve/locks/stored_lock.h>

#include <map>
#include <mutex>

namespace varve::locks {

/// Since when claims on locks stand as this process has last seen them. Their expiry was written by another clock, which
/// may be wrong by any amount; so whoever has not renewed a claim for its whole time to live has lost it, whatever it
/// says.
///
/// Threads: all methods may be called from any thread.
class Sightings {
  public:
    /// `time_to_live`: of a claim that does not say its own.
    Sightings(Clock& clock, Duration time_to_live) : clock_(clock), time_to_live_(time_to_live) {}

    /// Whether what was just read under `key`, a place in a queue or a holder's claim, is over: its expiry has passed, or
    /// it was seen unchanged for its time to live.
    bool is_over(const store::Key& key, const Queued& claim);

  private:
    struct Sighting {
        std::string owner;
        Time expires;
        SteadyTime since;
    };

    Clock& clock_;
    const Duration time_to_live_;
    std::mutex mutex_;
    std::map<store::Key, Sighting> seen_;  // guarded by mutex_
};

}  // namespace varve::locks
