#pragma once

#include <varve/core/mutex.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace varve::sqlite {

struct Slot;

/// Gathers the requests of all threads into groups, so that one commit, and one fsync, serves all who wait for it.
///
/// There is no thread for it: the first caller who finds nobody at work leads. It runs the group, hands the lead to the
/// first who waits by then, and returns; the members of its group return with it. A single caller thus pays for no
/// switch of threads, and under load a group is what arrived while the one before was committed.
///
/// Requests are linked to each other, so that nothing from the first to the last one's answer needs memory: whoever is
/// in the queue gets an answer.
///
/// Threads: any.
class CommitQueue {
  public:
    /// What a caller wants done; lives on its stack while it waits.
    struct Request {
        std::size_t cost = 1;  ///< writes in it
        /// The next one of its group.
        Request* next() const { return next_; }

      private:
        friend class CommitQueue;
        Request* next_ = nullptr;
        Slot* slot_ = nullptr;
    };

    /// The requests that one commit takes along.
    class Group {
      public:
        /// Takes the next request, nullptr if nobody else waits or the group is large enough. Never nullptr at first.
        Request* take();
        /// As `take`, without an end to the group.
        Request* take_any();
        /// The first of those taken so far.
        Request* first() const { return first_; }

      private:
        friend class CommitQueue;
        explicit Group(CommitQueue& queue) : queue_(queue) {}

        CommitQueue& queue_;
        std::size_t cost_ = 0;
        Request* first_ = nullptr;
        Request* last_ = nullptr;
    };

    /// `commit` runs a group, at least its first request, and leaves its outcome in each that it took. `tidy` runs
    /// after the answers went out and beside the next group's commit, for work that no other caller should wait for; it
    /// may run several times at once. Neither may throw.
    CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy);
    ~CommitQueue();

    /// Returns when `request` has its outcome. Throws std::bad_alloc only before it is queued.
    void run(Request& request);

  private:
    void lead(const Request& own) noexcept;

    const std::function<void(Group&)> commit_;
    const std::function<void()> tidy_;

    Mutex mutex_;
    Request* first_waiting_ VARVE_GUARDED_BY(mutex_) = nullptr;
    Request* last_waiting_ VARVE_GUARDED_BY(mutex_) = nullptr;
    std::vector<std::unique_ptr<Slot>> slots_ VARVE_GUARDED_BY(mutex_);
    std::vector<Slot*> free_slots_ VARVE_GUARDED_BY(mutex_);  // has room for all slots
    bool led_ VARVE_GUARDED_BY(mutex_) = false;
};

}  // namespace varve::sqlite
