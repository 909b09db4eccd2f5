#pragma once

#include <varve/core/own_process.h>
#include <varve/core/runtime.h>
#include <varve/core/threads.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace varve {

/// A thread like std::jthread: the destructor asks it to stop and waits for it. In a forked child there is no such
/// thread, and the destructor waits for nobody.
///
///     sweeper_ = BackgroundThread{[this](const std::stop_token& stop) { sweep(stop); }};
///
/// Threads: one at a time.
class BackgroundThread {
  public:
    BackgroundThread() = default;
    explicit BackgroundThread(std::function<void(const std::stop_token&)> run, Threads& threads = system_threads())
        : thread_(threads.start(std::move(run))) {}
    BackgroundThread(BackgroundThread&&) = default;
    BackgroundThread& operator=(BackgroundThread&&) = default;
    ~BackgroundThread() {
        if (thread_ && process_.is_another()) abandon(std::move(thread_));
    }

    bool is_running() const { return thread_ != nullptr; }
    /// Does not wait for its end, as the destructor does.
    void request_stop() noexcept {
        if (thread_ && !process_.is_another()) thread_->request_stop();
    }

  private:
    OwnProcess process_;
    std::unique_ptr<Threads::Running> thread_;
};

}  // namespace varve
