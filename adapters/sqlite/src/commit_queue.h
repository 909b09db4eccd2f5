#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace varve::sqlite {

struct Slot;

/// Gathers the requests of all threads into groups, so that one commit, and one fsync, serves all who wait for it.
///
/// There is no thread for it: the first caller who finds nobody at work leads. It runs the group, hands the lead to the
/// first who waits by then, and returns; the members of its group return with it. A single caller thus pays for no
/// switch of threads, and under load a group is what arrived while the one before was committed.
///
/// Threads: any.
class CommitQueue {
  public:
    /// What a caller wants done; lives on its stack while it waits.
    struct Request {
        std::size_t cost = 1;  ///< writes in it
    };

    /// The requests that one commit takes along.
    class Group {
      public:
        /// The next request to run, nullptr if nobody else waits or the group is large enough. Never nullptr at first.
        Request* next();
        /// As `next`, without an end to the group.
        Request* next_of_all();

      private:
        friend class CommitQueue;
        explicit Group(CommitQueue& queue) : queue_(queue) {}

        CommitQueue& queue_;
        std::size_t cost_ = 0;
        std::vector<Slot*> members_;
    };

    /// `commit` runs a group and leaves its outcome in each request it took; it must not throw. `tidy` runs while
    /// nobody commits, after the answers went out: for work that no caller should wait for.
    CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy);
    ~CommitQueue();

    /// Returns when `request` has its outcome.
    void run(Request& request);

  private:
    void lead(Slot* own);

    const std::function<void(Group&)> commit_;
    const std::function<void()> tidy_;

    std::mutex mutex_;
    // Guarded by mutex_:
    std::deque<Slot*> waiting_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<Slot*> free_slots_;
    bool led_ = false;
};

}  // namespace varve::sqlite
