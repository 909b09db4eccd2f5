#include "locks/expiry.h"

namespace varve::locks {

bool Expiry::is_over(const store::Key& key, const Queued& claim) {
    if (claim.expires <= clock_.now()) return true;
    const SteadyTime now = clock_.steady_now();
    const std::string as_it_stands = claim.owner + " " + std::to_string(claim.expires.time_since_epoch().count());
    const Duration lives = claim.time_to_live > Duration::zero() ? claim.time_to_live : time_to_live_;
    return now - sightings_.since(key, as_it_stands, now) >= lives;
}

}  // namespace varve::locks
