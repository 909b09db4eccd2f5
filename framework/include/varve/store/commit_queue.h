#pragma once

#include <varve/core/mutex.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace varve::store {

/// Gathers the requests of all threads into groups, so that one commit, and one flush, serves all who wait for it. For
/// adapters.
///
/// There is no thread for it: a caller who finds fewer leaders at work than may be leads. It runs a group, hands the
/// lead to the first who waits by then, and returns; the members of its group return with it. A single caller thus pays
/// for no switch of threads, and under load a group is what arrived while the one before was committed.
///
/// Requests are linked to each other, so that nothing from the first to the last one's answer needs memory: whoever is
/// in the queue gets an answer.
///
///     store::CommitQueue queue{[&](store::CommitQueue::Group& group) {
///                                  begin();
///                                  while (auto* request = group.take()) run(static_cast<Request&>(*request));
///                                  commit();
///                              },
///                              [] {}};
///     queue.run(request);  // in any thread; returns with its outcome
///
/// Threads: any.
class CommitQueue {
    struct Place;

  public:
    /// What a caller wants done; lives on its stack while it waits, where others know its address.
    struct Request {
        Request() = default;
        Request(const Request&) = delete;
        Request& operator=(const Request&) = delete;

        std::size_t cost = 1;  ///< writes in it, and more if they are large; a group that has a thousand is full
        /// The next one of its group.
        Request* next() const { return next_; }

      private:
        friend class CommitQueue;
        Request* next_ = nullptr;
        Place* place_ = nullptr;
    };

    /// The requests that one commit takes along.
    class Group {
      public:
        /// Takes the next request, the leader's own at first; nullptr if nobody else waits or the group is large
        /// enough.
        Request* take();
        /// As `take`, without an end to the group.
        Request* take_any();
        /// The first of those taken so far.
        Request* first() const { return first_; }

      private:
        friend class CommitQueue;
        Group(CommitQueue& queue, Request& own) : queue_(queue), own_(own) {}

        CommitQueue& queue_;
        Request& own_;
        std::size_t cost_ = 0;
        Request* first_ = nullptr;
        Request* last_ = nullptr;
    };

    /// `commit` runs a group, at least its first request, and leaves its outcome in each that it took. `tidy` runs
    /// after the answers went out and beside the next group's commit, for work that no other caller should wait for; it
    /// may run several times at once. Neither may throw. `leaders_max`: groups that may be committed at once.
    CommitQueue(std::function<void(Group&)> commit, std::function<void()> tidy, std::size_t leaders_max = 1);
    ~CommitQueue();

    /// Returns when `request` has its outcome. Throws std::bad_alloc only before it is queued.
    void run(Request& request);

  private:
    void lead(Request& own) noexcept;
    Request* next_waiting() VARVE_REQUIRES(mutex_);

    const std::function<void(Group&)> commit_;
    const std::function<void()> tidy_;
    const std::size_t leaders_max_;

    Mutex mutex_;
    Request* first_waiting_ VARVE_GUARDED_BY(mutex_) = nullptr;
    Request* last_waiting_ VARVE_GUARDED_BY(mutex_) = nullptr;
    std::vector<std::unique_ptr<Place>> places_ VARVE_GUARDED_BY(mutex_);
    std::vector<Place*> free_places_ VARVE_GUARDED_BY(mutex_);  // has room for all of them
    std::size_t leaders_ VARVE_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::store
