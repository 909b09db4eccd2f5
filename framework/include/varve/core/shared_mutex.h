#pragma once

#include <varve/core/mutex.h>

#include <shared_mutex>

namespace varve {

/// As Mutex (core/mutex.h), and several may hold it together who only read.
///
///     mutable SharedMutex mutex_;
///     std::map<std::string, Table> tables_ VARVE_GUARDED_BY(mutex_);
///
///     bool has(const std::string& name) const {
///         const SharedLock lock{mutex_};
///         return tables_.contains(name);
///     }
class VARVE_THREAD_ANNOTATION(capability("shared_mutex")) SharedMutex {
  public:
    void lock() VARVE_THREAD_ANNOTATION(acquire_capability()) { native_.lock(); }
    void unlock() VARVE_THREAD_ANNOTATION(release_capability()) { native_.unlock(); }
    void lock_shared() VARVE_THREAD_ANNOTATION(acquire_shared_capability()) { native_.lock_shared(); }
    void unlock_shared() VARVE_THREAD_ANNOTATION(release_shared_capability()) { native_.unlock_shared(); }

  private:
    std::shared_mutex native_;
};

/// Holds it together with others who only read, for as long as it lives.
class VARVE_THREAD_ANNOTATION(scoped_lockable) SharedLock {
  public:
    explicit SharedLock(SharedMutex& mutex) VARVE_THREAD_ANNOTATION(acquire_shared_capability(mutex)) : mutex_(mutex) {
        mutex_.lock_shared();
    }
    ~SharedLock() VARVE_THREAD_ANNOTATION(release_capability()) { mutex_.unlock_shared(); }
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;

  private:
    SharedMutex& mutex_;
};

/// Holds it alone.
class VARVE_THREAD_ANNOTATION(scoped_lockable) ExclusiveLock {
  public:
    explicit ExclusiveLock(SharedMutex& mutex) VARVE_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
        mutex_.lock();
    }
    ~ExclusiveLock() VARVE_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    ExclusiveLock(const ExclusiveLock&) = delete;
    ExclusiveLock& operator=(const ExclusiveLock&) = delete;

  private:
    SharedMutex& mutex_;
};

}  // namespace varve
