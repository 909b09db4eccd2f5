#include <varve/core/retry.h>

#include <algorithm>

namespace varve {

Backoff::Backoff(const RetryPolicy& policy, Runtime runtime, SteadyTime began)
    : policy_(policy), runtime_(runtime), began_(began), delay_(policy.first_delay) {}

Duration Backoff::left() const {
    return policy_.time_max - (runtime_.clock.get().steady_now() - began_);
}

SteadyTime Backoff::until() const {
    return policy_.time_max < SteadyTime::max() - began_ ? began_ + policy_.time_max : SteadyTime::max();
}

bool Backoff::exhausted() const {
    return attempts_ >= policy_.attempts_max || left() <= Duration::zero();
}

std::string Backoff::spent() const {
    const std::string attempts = std::to_string(attempts_) + (attempts_ == 1 ? " attempt" : " attempts");
    if (attempts_ >= policy_.attempts_max) return "after " + attempts + ", as many as retry.attempts_max allows";
    const Duration taken = std::chrono::floor<std::chrono::milliseconds>(policy_.time_max - left());
    return "after " + attempts + " in " + to_string(taken) + ", of the " + to_string(policy_.time_max) +
           " that retry.time_max allows";
}

bool Backoff::next() {
    if (exhausted()) return false;
    const auto jitter =
        runtime_.random.get().below(static_cast<std::uint64_t>(std::max<Duration::rep>(delay_.count(), 0)) + 1);
    runtime_.clock.get().sleep_for(std::min(Duration(jitter), left()));
    delay_ = std::min(delay_ * 2, policy_.delay_max);
    ++attempts_;
    return true;
}

bool Backoff::next_without_delay() {
    if (attempts_ > 1) return next();
    if (exhausted()) return false;
    ++attempts_;
    return true;
}

}  // namespace varve
