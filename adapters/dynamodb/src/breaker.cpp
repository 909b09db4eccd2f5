#include "breaker.h"

#include <algorithm>
#include <utility>

namespace varve::dynamodb {

Breaker::Leave Breaker::ask() {
    const MutexLock lock{mutex_};
    if (failures_ < failures_min) return Leave::send;
    const SteadyTime now = runtime_.clock.get().steady_now();
    if (now < next_probe_) return Leave::wait;
    pause_ = std::clamp(pause_ * 2, pauses_.first_delay, pauses_.delay_max);
    // Not all processes at the same moment.
    const auto half = static_cast<std::uint64_t>(pause_.count() / 2);
    next_probe_ = now + Duration{static_cast<Duration::rep>(half + runtime_.random.get().below(half + 1))};
    return Leave::probe;
}

void Breaker::answered() {
    const MutexLock lock{mutex_};
    failures_ = 0;
    pause_ = {};
    next_probe_ = {};
}

void Breaker::failed(std::string why) {
    const MutexLock lock{mutex_};
    failures_ = std::min(failures_ + 1, failures_min);
    last_failure_ = std::move(why);
}

std::string Breaker::last_failure() const {
    const MutexLock lock{mutex_};
    return last_failure_;
}

}  // namespace varve::dynamodb
