#include <varve/core/error.h>
#include <varve/testing/manual_clock.h>

namespace varve::testing {

Time ManualClock::now() {
    const std::lock_guard lock{mutex_};
    return now_;
}

SteadyTime ManualClock::steady_now() {
    const std::lock_guard lock{mutex_};
    return steady_now_;
}

void ManualClock::sleep_for(Duration duration, std::stop_token stop) {
    if (duration <= Duration::zero()) return;
    std::unique_lock lock{mutex_};
    if (duration == Duration::max()) {
        moved_.wait(lock, stop, [] { return false; });
        return;
    }
    if (mode_ == Mode::auto_advance) {
        if (stop.stop_requested()) return;
        now_ += duration;
        steady_now_ += duration;
        return;
    }
    const Duration left = SteadyTime::max() - steady_now_;
    const SteadyTime end = duration < left ? steady_now_ + duration : SteadyTime::max();
    ++sleepers_;
    fell_asleep_.notify_all();
    moved_.wait(lock, stop, [&] { return steady_now_ >= end; });
    --sleepers_;
}

void ManualClock::advance(Duration duration) {
    if (duration < Duration::zero()) {
        throw InvalidError("time does not pass backwards (" + to_string(duration) +
                           "); to set the wall clock back, call jump");
    }
    {
        const std::lock_guard lock{mutex_};
        now_ += duration;
        steady_now_ += duration;
    }
    moved_.notify_all();
}

void ManualClock::jump(Duration duration) {
    const std::lock_guard lock{mutex_};
    now_ += duration;
}

void ManualClock::wait_for_sleepers(std::size_t count) {
    std::unique_lock lock{mutex_};
    fell_asleep_.wait(lock, [&] { return sleepers_ >= count; });
}

}  // namespace varve::testing
