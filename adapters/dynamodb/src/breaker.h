#pragma once

#include <varve/core/mutex.h>
#include <varve/core/retry.h>

#include <string>

namespace varve::dynamodb {

/// Spares a server that fails for everybody in this process. When one request after the other has failed, and none was
/// answered in between, only a probe goes out now and then, after pauses that grow; everybody else waits without
/// sending. The first answer lets all of them go on.
///
/// Threads: all methods may be called from any thread.
class Breaker {
  public:
    /// So many failures in a row are no accident.
    static constexpr unsigned failures_min = 10;

    /// `pauses` tells how the time between two probes grows.
    Breaker(const RetryPolicy& pauses, Runtime runtime) : pauses_(pauses), runtime_(runtime) {}

    enum class Leave {
        send,
        probe,  ///< send, for all the others who must wait
        wait,
    };
    /// Whether one request may be sent now.
    Leave ask();

    /// The server answered a request, be it with an error that is the request's own fault.
    void answered();
    /// It did not, or said that it cannot serve anybody now. `why` is for the messages of those who wait.
    void failed(std::string why);

    std::string last_failure() const;

  private:
    const RetryPolicy pauses_;
    const Runtime runtime_;
    mutable Mutex mutex_;
    unsigned failures_ VARVE_GUARDED_BY(mutex_) = 0;  // in a row
    std::string last_failure_ VARVE_GUARDED_BY(mutex_);
    Duration pause_ VARVE_GUARDED_BY(mutex_){};  // between the probe before and the next one
    SteadyTime next_probe_ VARVE_GUARDED_BY(mutex_){};
};

}  // namespace varve::dynamodb
