#include "sightings.h"

namespace varve::locks {
namespace {

/// Beyond it all begins anew, which costs those who wait a time to live.
constexpr std::size_t sightings_max = 10'000;

}  // namespace

bool Sightings::is_over(const store::Key& key, const Queued& claim) {
    if (claim.expires <= clock_.now()) return true;
    const SteadyTime now = clock_.steady_now();
    const Duration lives = claim.time_to_live > Duration::zero() ? claim.time_to_live : time_to_live_;
    const std::lock_guard lock{mutex_};
    const auto found = seen_.find(key);
    if (found != seen_.end() && found->second.owner == claim.owner && found->second.expires == claim.expires) {
        return now - found->second.since >= lives;
    }
    if (seen_.size() >= sightings_max) seen_.clear();
    seen_.insert_or_assign(key, Sighting{.owner = claim.owner, .expires = claim.expires, .since = now});
    return false;
}

}  // namespace varve::locks
