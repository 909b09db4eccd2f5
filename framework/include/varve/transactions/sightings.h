#pragma once

#include <varve/transactions/claim.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace varve::transactions {

/// Since when this process has seen each claim stand still. A lease is judged by this alone: how the clocks of others go
/// does not matter, nor what they have written into the claim, but that it changes while its owner lives on.
///
///     if (clock.steady_now() - sightings.since(claim, clock.steady_now()) >= lease) …   // its owner is taken for dead
///
/// What has been met longest ago is forgotten where there is too much of it, and counts as met anew.
///
/// Threads: all methods may be called from any thread.
class Sightings {
  public:
    /// When the claim was first met as it is: `now`, if that is here.
    SteadyTime since(const Claim& claim, SteadyTime now);

  private:
    static constexpr std::size_t recent_max = 10'000;

    struct Sighting {
        Time lease;  // the last one that was seen; a renewal begins it anew
        SteadyTime since;
    };
    using Transactions = std::map<std::string, Sighting, std::less<>>;

    std::mutex mutex_;
    Transactions recent_;  // guarded by mutex_
    Transactions before_;  // guarded by mutex_; what was not met again while `recent_` filled is dropped
};

}  // namespace varve::transactions
