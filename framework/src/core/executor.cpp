#include "core/thread_name.h"
#include "core/what_was_thrown.h"

#include <varve/core/error.h>
#include <varve/core/executor.h>
#include <varve/core/mutex.h>
#include <varve/core/own_process.h>
#include <varve/core/runtime.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace varve {
namespace {

class ThreadExecutor final : public Executor {
  public:
    ThreadExecutor(std::size_t threads, Runtime runtime) : runtime_(runtime) {
        if (threads == 0) throw ConfigError("background work needs at least one thread, not 0");
        try {
            for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
        } catch (const std::system_error& error) {
            close();
            throw UnavailableError("of " + std::to_string(threads) + " threads for background work only " +
                                   std::to_string(threads_.size()) + " could be started: " + error.what());
        } catch (...) {
            close();
            throw;
        }
    }

    ~ThreadExecutor() override { close(); }

    void post(std::function<void()> task) override {
        {
            const MutexLock lock{mutex_};
            tasks_.push_back(std::move(task));
            ++unfinished_;
        }
        work_.notify_one();
    }

    void drain() override {
        MutexLock lock{mutex_};
        while (unfinished_ != 0) lock.wait(idle_);
    }

  private:
    void close() {
        {
            const MutexLock lock{mutex_};
            closing_ = true;
        }
        work_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void run() {
        name_this_thread("varve-work");
        MutexLock lock{mutex_};
        for (;;) {
            while (!closing_ && tasks_.empty()) lock.wait(work_);
            if (tasks_.empty()) return;
            std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            try {
                task();
            } catch (...) {
                try_to_log(runtime_.log, LogLevel::warning,
                           [] { return "background work failed: " + what_was_thrown(); });
            }
            task = nullptr;
            lock.lock();
            if (--unfinished_ == 0) idle_.notify_all();
        }
    }

    Runtime runtime_;
    Mutex mutex_;
    std::condition_variable work_;
    std::condition_variable idle_;
    std::deque<std::function<void()>> tasks_ VARVE_GUARDED_BY(mutex_);
    std::size_t unfinished_ VARVE_GUARDED_BY(mutex_) = 0;  // queued and running
    bool closing_ VARVE_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

/// Has its threads in one process only.
class OwnThreads final : public Executor {
  public:
    OwnThreads(std::size_t threads, Runtime runtime) : threads_(std::make_unique<ThreadExecutor>(threads, runtime)) {}
    ~OwnThreads() override {
        if (process_.is_another()) abandon(std::move(threads_));
    }
    void post(std::function<void()> task) override { threads_->post(std::move(task)); }
    void drain() override { threads_->drain(); }

  private:
    OwnProcess process_;
    std::unique_ptr<ThreadExecutor> threads_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(std::size_t threads, Runtime runtime) {
    return std::make_unique<OwnThreads>(threads, runtime);
}

}  // namespace varve
