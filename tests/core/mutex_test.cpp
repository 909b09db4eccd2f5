#include <varve/core/mutex.h>

#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

/// As classes use it: clang refuses to compile a use of `count_` without the lock.
class Counter {
  public:
    void add() {
        {
            const MutexLock lock{mutex_};
            ++count_;
        }
        changed_.notify_all();
    }
    void wait_for(int count) {
        MutexLock lock{mutex_};
        while (count_ < count) lock.wait(changed_);
    }

  private:
    Mutex mutex_;
    std::condition_variable changed_;
    int count_ VARVE_GUARDED_BY(mutex_) = 0;
};

TEST(AMutexLock, lets_one_in_at_a_time_and_waits_for_a_condition) {
    Counter counter;
    const auto add = [&] {
        for (int i = 0; i < 1000; ++i) counter.add();
    };
    const std::jthread one{add}, two{add};
    counter.wait_for(2000);
}

TEST(AMutexLock, can_be_let_go_and_taken_again) {
    Mutex mutex;
    MutexLock lock{mutex};
    lock.unlock();
    { const MutexLock another{mutex}; }
    lock.lock();
}

TEST(ARecursiveMutex, is_taken_again_by_its_holder) {
    RecursiveMutex mutex;
    const auto take = [&] { const MutexLock lock{mutex}; };
    const MutexLock lock{mutex};
    take();
}

}  // namespace
}  // namespace varve
