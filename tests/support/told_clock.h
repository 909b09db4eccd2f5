#pragma once

#include <varve/testing/manual_clock.h>

#include <semaphore>
#include <stop_token>
#include <utility>

namespace varve {

/// Tells whenever somebody goes to sleep.
class ToldClock final : public Clock {
  public:
    Time now() override { return clock_.now(); }
    SteadyTime steady_now() override { return clock_.steady_now(); }
    void sleep_for(Duration duration, std::stop_token stop) override {
        sleeps_.release();
        clock_.sleep_for(duration, std::move(stop));
    }
    void advance_when_asleep(Duration duration) {
        sleeps_.acquire();
        clock_.wait_for_sleepers(1);
        clock_.advance(duration);
    }

  private:
    testing::ManualClock clock_;
    std::counting_semaphore<> sleeps_{0};
};

}  // namespace varve
