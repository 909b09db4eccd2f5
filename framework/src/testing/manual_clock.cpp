#include <varve/testing/manual_clock.h>

namespace varve::testing {

Time ManualClock::now() {
    const std::lock_guard lock{mutex_};
    return now_;
}

void ManualClock::sleep_for(Duration duration, std::stop_token stop) {
    if (duration <= Duration::zero()) return;
    std::unique_lock lock{mutex_};
    if (mode_ == Mode::auto_advance) {
        if (stop.stop_requested()) return;
        now_ += duration;
        return;
    }
    const Time end = now_ + duration;
    ++sleepers_;
    fell_asleep_.notify_all();
    moved_.wait(lock, stop, [&] { return now_ >= end; });
    --sleepers_;
}

void ManualClock::advance(Duration duration) {
    {
        const std::lock_guard lock{mutex_};
        now_ += duration;
    }
    moved_.notify_all();
}

void ManualClock::wait_for_sleepers(std::size_t count) {
    std::unique_lock lock{mutex_};
    fell_asleep_.wait(lock, [&] { return sleepers_ >= count; });
}

}  // namespace varve::testing
