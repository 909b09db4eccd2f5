#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace varve {

/// Where the framework's background loops run. It is injected, so that a simulation runs them, one at a time.
///
/// Threads: all methods may be called from any thread.
class Threads {
  public:
    /// One that has begun.
    class Running {
      public:
        /// Asks it to stop, and waits until it has ended.
        virtual ~Running() = default;
        /// Does not wait for its end.
        virtual void request_stop() noexcept = 0;
    };

    virtual ~Threads() = default;
    /// Runs `run` beside its caller; `run` throws nothing. Errors: std::system_error if there can be no more threads.
    virtual std::unique_ptr<Running> start(std::function<void(const std::stop_token& stop)> run) = 0;
};

}  // namespace varve
