#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace varve {

/// Runs work that nobody waits for, such as finalising a transaction after it was acknowledged. It is injected, so that
/// a simulation decides when the work happens, if at all: a process may die first.
///
///     const std::unique_ptr<varve::Executor> threads = varve::make_thread_executor(2, {});
///     threads->post([&] { … });
///     threads->drain();
///
/// Threads: both methods may be called from any thread, but drain() not from a task: it would wait for itself.
/// Errors: neither method throws. What a task throws is logged and dropped.
class Executor {
  public:
    virtual ~Executor() = default;
    /// Runs `task` some time later on one of the executor's threads.
    virtual void post(std::function<void()> task) = 0;
    /// Returns when everything posted before this call has run, and everything that these tasks posted in turn.
    virtual void drain() = 0;
};

struct Runtime;

/// An executor with its own threads. The destructor runs what is still queued, then joins. ConfigError for 0 threads.
std::unique_ptr<Executor> make_thread_executor(std::size_t threads, Runtime runtime);

}  // namespace varve
