#include <varve/transactions/sightings.h>

#include <utility>

namespace varve::transactions {

SteadyTime Sightings::since(const Claim& claim, SteadyTime now) {
    const std::lock_guard lock{mutex_};
    if (recent_.size() >= recent_max) before_ = std::exchange(recent_, {});
    Sighting met{.lease = claim.lease, .since = now};
    if (const auto earlier = before_.find(claim.tx); earlier != before_.end()) {
        met = earlier->second;
        before_.erase(earlier);
    }
    Sighting& sighting = recent_.try_emplace(claim.tx, met).first->second;
    if (claim.lease > sighting.lease) sighting = {.lease = claim.lease, .since = now};
    return sighting.since;
}

}  // namespace varve::transactions
