#include <varve/core/retry.h>

#include <algorithm>

namespace varve {

Backoff::Backoff(const RetryPolicy& policy, Runtime runtime)
    : policy_(policy), runtime_(runtime), began_(runtime.clock.steady_now()), delay_(policy.first_delay) {}

Duration Backoff::left() const {
    return policy_.time_max - (runtime_.clock.steady_now() - began_);
}

bool Backoff::exhausted() const {
    return attempts_ >= policy_.attempts_max || left() <= Duration::zero();
}

bool Backoff::next() {
    if (exhausted()) return false;
    const auto jitter =
        runtime_.random.below(static_cast<std::uint64_t>(std::max<Duration::rep>(delay_.count(), 0)) + 1);
    runtime_.clock.sleep_for(std::min(Duration(jitter), left()));
    delay_ = std::min(delay_ * 2, policy_.delay_max);
    ++attempts_;
    return true;
}

bool Backoff::next_at_once() {
    if (attempts_ > 1) return next();
    if (exhausted()) return false;
    ++attempts_;
    return true;
}

}  // namespace varve
