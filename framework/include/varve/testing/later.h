#pragma once

#include <varve/core/executor.h>

#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace varve::testing {

/// Keeps background work until the test runs it. What precedes an acknowledgement stays apart from what follows it,
/// and a process that dies in between never runs the rest.
///
///     Later later;
///     varve::Application bank{store, {.executor = &later}};
///     bank.transact(transfer);  // committed; its writes are not finalised
///     later.drain();            // now they are
///
/// Threads: all methods may be called from any thread; a task runs on the thread that asked for it.
/// Errors: what a task throws passes through, and the tasks behind it stay.
class Later : public Executor {
  public:
    void post(std::function<void()> task) override {
        const std::lock_guard lock{mutex_};
        tasks_.push_back(std::move(task));
    }
    /// Runs all that is kept, and what that posts in turn.
    void drain() override {
        while (run_next()) {
        }
    }
    /// Runs what has waited longest; false if nothing does.
    bool run_next() {
        std::function<void()> task;
        {
            const std::lock_guard lock{mutex_};
            if (tasks_.empty()) return false;
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        task();
        return true;
    }
    /// Drops all that is kept, as the death of a process does.
    void forget() {
        std::deque<std::function<void()>> dropped;
        const std::lock_guard lock{mutex_};
        dropped.swap(tasks_);
    }

  private:
    std::mutex mutex_;
    std::deque<std::function<void()>> tasks_;  // guarded by mutex_
};

}  // namespace varve::testing
