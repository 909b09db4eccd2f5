#pragma once

#include <varve/core/runtime.h>

#include <limits>
#include <string>

namespace varve {

/// How long to keep trying. Delays grow exponentially and are drawn uniformly from [0, current delay] ("full jitter",
/// M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
struct RetryPolicy {
    Duration first_delay = std::chrono::milliseconds{1};
    Duration delay_max = std::chrono::milliseconds{200};
    unsigned attempts_max = 1000;  ///< the first one included
    /// From the first attempt. No new one begins after it, and none waits longer.
    Duration time_max = std::chrono::seconds{15};

    static RetryPolicy once() { return {.attempts_max = 1}; }
    /// For whoever waits for others, or asks a silent store again: for at most `time_max`, in any number of attempts.
    static RetryPolicy waiting(Duration time_max) {
        return {.delay_max = std::chrono::milliseconds{100},
                .attempts_max = std::numeric_limits<unsigned>::max(),
                .time_max = time_max};
    }
};

/// One run of a policy: call `next()` after each failed attempt.
///
///     for (Backoff backoff{policy, runtime};;) {
///         if (attempt()) return;
///         if (!backoff.next()) throw ConflictError{...};
///     }
///
/// Threads: one Backoff belongs to one thread.
class Backoff {
  public:
    Backoff(const RetryPolicy& policy, Runtime runtime) : Backoff(policy, runtime, runtime.clock.get().steady_now()) {}
    Backoff(const RetryPolicy& policy, Runtime runtime, SteadyTime began);

    /// Sleeps and returns true, or returns false at once if no attempt is left.
    bool next();
    /// As `next()`, but the first retry comes without a delay: for a conflict that is already over.
    bool next_without_delay();

    /// When the policy's time is over. No attempt waits beyond it.
    SteadyTime until() const;
    unsigned attempts() const { return attempts_; }  ///< begun so far, the current one included
    /// For the message of whoever gives up: "after 3 attempts in 15.2 s, of the 15 s that retry.time_max allows".
    std::string spent() const;

  private:
    bool exhausted() const;
    Duration left() const;

    RetryPolicy policy_;
    Runtime runtime_;
    SteadyTime began_;
    Duration delay_;
    unsigned attempts_ = 1;
};

}  // namespace varve
