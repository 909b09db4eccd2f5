#pragma once

#include <atomic>

namespace varve::dynamodb {

/// Bounds what is sent again while a server fails for many: each repetition takes one from a store of them. A call that
/// succeeds gives back all that it took, and one that needed none fills the store up by a fifth of one. So calls that
/// succeed in the end never use it up, however many repetitions they needed; what calls took that failed is lost.
///
/// Threads: all methods may be called from any thread.
class RetryBudget {
  public:
    explicit RetryBudget(unsigned repetitions) : full_(long{repetitions} * cost), left_(full_) {}

    /// False: none are left now.
    bool take() {
        long left = left_.load();
        while (left >= cost) {
            if (left_.compare_exchange_weak(left, left - cost)) return true;
        }
        return false;
    }
    /// A call succeeded that had taken so many.
    void succeeded(unsigned taken) {
        const long more = taken == 0 ? 1 : long{taken} * cost;
        long left = left_.load();
        while (left < full_ && !left_.compare_exchange_weak(left, left + more < full_ ? left + more : full_)) {
        }
    }

  private:
    static constexpr long cost = 5;
    const long full_;
    std::atomic<long> left_;
};

}  // namespace varve::dynamodb
