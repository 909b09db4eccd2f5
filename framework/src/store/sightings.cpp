#include "store/sightings.h"

#include <utility>

namespace varve::store {

SteadyTime Sightings::since(const Key& key, std::string claim, SteadyTime now) {
    const MutexLock lock{mutex_};
    if (recent_.size() >= recent_max) before_ = std::exchange(recent_, {});
    if (auto earlier = before_.extract(key)) recent_.insert(std::move(earlier));
    Sighting& sighting = recent_.try_emplace(key, Sighting{claim, now}).first->second;
    if (sighting.claim != claim) sighting = {.claim = std::move(claim), .since = now};
    return sighting.since;
}

}  // namespace varve::store
