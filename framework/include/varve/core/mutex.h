#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// A member's declaration says which mutex guards it, and clang refuses code that does not hold that mutex. Other
// compilers ignore it.
#if defined(__clang__)
#define VARVE_THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define VARVE_THREAD_ANNOTATION(attribute)
#endif

/// For a member: only code that holds `mutex` reads or writes it.
#define VARVE_GUARDED_BY(mutex) VARVE_THREAD_ANNOTATION(guarded_by(mutex))
/// For a function: only code that holds these calls it.
#define VARVE_REQUIRES(...) VARVE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))

namespace varve {

/// A mutex of the standard library; clang knows where it is held.
///
///     Mutex mutex_;
///     std::deque<Task> tasks_ VARVE_GUARDED_BY(mutex_);
///
///     void add(Task task) {
///         const MutexLock lock{mutex_};
///         tasks_.push_back(std::move(task));
///     }
template <class Native>
class VARVE_THREAD_ANNOTATION(capability("mutex")) BasicMutex {
  public:
    void lock() VARVE_THREAD_ANNOTATION(acquire_capability()) { native_.lock(); }
    void unlock() VARVE_THREAD_ANNOTATION(release_capability()) { native_.unlock(); }

  private:
    template <class>
    friend class MutexLock;

    Native native_;
};

using Mutex = BasicMutex<std::mutex>;
using RecursiveMutex = BasicMutex<std::recursive_mutex>;

/// Holds a mutex for as long as it lives, except between unlock() and lock().
template <class Native>
class VARVE_THREAD_ANNOTATION(scoped_lockable) MutexLock {
  public:
    explicit MutexLock(BasicMutex<Native>& mutex) VARVE_THREAD_ANNOTATION(acquire_capability(mutex))
        : native_(mutex.native_) {}
    ~MutexLock() VARVE_THREAD_ANNOTATION(release_capability()) {}
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

    void lock() VARVE_THREAD_ANNOTATION(acquire_capability()) { native_.lock(); }
    void unlock() VARVE_THREAD_ANNOTATION(release_capability()) { native_.unlock(); }

    /// Lets go of the mutex until `condition` is notified. It may return without a reason: ask in a loop.
    void wait(std::condition_variable& condition) { condition.wait(native_); }
    /// As `wait`, until a moment of the steady clock at the latest. False: the moment has come.
    bool wait_until(std::condition_variable& condition, std::chrono::steady_clock::time_point moment) {
        return condition.wait_until(native_, moment) == std::cv_status::no_timeout;
    }

  private:
    std::unique_lock<Native> native_;
};

}  // namespace varve
