#include "core/background_loop.h"

#include "core/assert.h"
#include "core/thread_name.h"
#include "core/what_was_thrown.h"

#include <varve/core/mutex.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace varve {

class BackgroundLoop::Shared {
  public:
    Shared(Runtime runtime, Options options, Turn turn)
        : runtime_(runtime), options_(std::move(options)), turn_(std::move(turn)) {}

    void run(const std::stop_token& stop) {
        name_this_thread(options_.thread);
        const std::stop_callback wakes{stop, [this] { wake(); }};
        while (!stop.stop_requested()) pause(take_turn(stop), stop);
    }

    void wake() noexcept {
        const MutexLock lock{mutex_};
        is_woken_ = true;
        sleeps_.request_stop();
    }

  private:
    std::optional<Duration> take_turn(const std::stop_token& stop) try { return turn_(stop); } catch (...) {
        try_to_log(runtime_.log, LogLevel::warning,
                   [&] { return options_.work + " will try again: " + what_was_thrown(); });
        return options_.retry_after;
    }

    void pause(std::optional<Duration> length, std::stop_token until) {
        MutexLock lock{mutex_};
        if (!is_woken_) {
            try {
                sleeps_ = std::stop_source{};
                until = sleeps_.get_token();
            } catch (const std::bad_alloc&) {  // nobody but its end wakes it this time
                length = std::min(length.value_or(Duration::max()), options_.retry_after);
            }
            lock.unlock();
            runtime_.clock.get().sleep_for(length.value_or(Duration::max()), std::move(until));
            lock.lock();
        }
        is_woken_ = false;
    }

    const Runtime runtime_;
    const Options options_;
    const Turn turn_;
    Mutex mutex_;
    bool is_woken_ VARVE_GUARDED_BY(mutex_) = false;
    std::stop_source sleeps_ VARVE_GUARDED_BY(mutex_){std::nostopstate};
};

BackgroundLoop::BackgroundLoop(Runtime runtime, Options options, Turn turn) {
    VARVE_ASSERT(std::strlen(options.thread) <= 15, "the name of a thread has at most 15 characters");
    shared_ = std::make_shared<Shared>(runtime, std::move(options), std::move(turn));
    thread_ = BackgroundThread{[shared = shared_](const std::stop_token& stop) { shared->run(stop); }, runtime.threads};
}

void BackgroundLoop::wake() noexcept {
    if (shared_) shared_->wake();
}

}  // namespace varve
