#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace varve {

/// Runs work that nobody waits for, such as finalising a transaction after it was acknowledged. Injected, so that a
/// simulation decides when it happens, if at all: a process may die before.
///
///     const std::unique_ptr<varve::Executor> threads = varve::make_thread_executor(2, {});
///     threads->post([&] { … });
///     threads->drain();
///
/// Threads: both methods may be called from any thread; drain() not from a task, which would wait for itself.
/// Errors: neither throws; what a task throws is logged and dropped.
class Executor {
  public:
    virtual ~Executor() = default;
    /// Runs `task` some time later on a thread of the executor's.
    virtual void post(std::function<void()> task) = 0;
    /// Returns when everything posted before this call has run, and what that posted in turn.
    virtual void drain() = 0;
};

struct Runtime;

/// Threads of one's own. The destructor runs what is still queued, then joins. ConfigError for no thread at all.
std::unique_ptr<Executor> make_thread_executor(std::size_t threads, Runtime runtime);

}  // namespace varve
