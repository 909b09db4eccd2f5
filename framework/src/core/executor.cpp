#include <varve/core/error.h>
#include <varve/core/executor.h>
#include <varve/core/runtime.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
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
            const std::lock_guard lock{mutex_};
            tasks_.push_back(std::move(task));
            ++unfinished_;
        }
        work_.notify_one();
    }

    void drain() override {
        std::unique_lock lock{mutex_};
        idle_.wait(lock, [this] { return unfinished_ == 0; });
    }

  private:
    void close() {
        {
            const std::lock_guard lock{mutex_};
            closing_ = true;
        }
        work_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void run() {
        std::unique_lock lock{mutex_};
        for (;;) {
            work_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            try {
                task();
            } catch (const std::exception& error) {
                try_to_log(runtime_.log, LogLevel::warning,
                           [&] { return std::string{"background work failed: "} + error.what(); });
            } catch (...) {
                try_to_log(runtime_.log, LogLevel::warning,
                           [] { return "background work failed with what is no std::exception"; });
            }
            task = nullptr;
            lock.lock();
            if (--unfinished_ == 0) idle_.notify_all();
        }
    }

    Runtime runtime_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable idle_;
    std::deque<std::function<void()>> tasks_;  // guarded by mutex_
    std::size_t unfinished_ = 0;               // guarded by mutex_: queued and running
    bool closing_ = false;                     // guarded by mutex_
    std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(std::size_t threads, Runtime runtime) {
    return std::make_unique<ThreadExecutor>(threads, runtime);
}

}  // namespace varve
