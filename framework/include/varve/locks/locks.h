#pragma once

#include <varve/core/runtime.h>
#include <varve/locks/lock.h>
#include <varve/locks/metrics.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace varve {

namespace locks {
class Sightings;
}

struct LocksOptions {
    /// How long a process that falls silent keeps its locks and its places in queues. Heartbeats come at half of it.
    /// Clocks that disagree by more make locks change hands too early, which fenced transactions survive; never too
    /// late, since whoever waits measures the silence by its own steady clock.
    Duration time_to_live = std::chrono::seconds{10};
    /// Whether heartbeats have a thread, which begins with the first lock. Without it, whoever holds locks calls
    /// beat().
    bool heartbeat_thread = true;
};

struct AcquireOptions {
    /// How long to queue for: zero gives up at once if anybody is ahead, Locks::for_ever never does.
    Duration wait = std::chrono::seconds{15};
    /// Called once if the lock is lost, by the thread that notices, which is that of the heartbeats unless somebody
    /// asks the lock first. Must not wait for anybody. What it throws is logged and dropped.
    std::function<void()> on_lost = {};
    /// Gives up the wait when stop is requested.
    std::stop_token stop = {};
};

/// Locks by name, for all processes that use one store; whoever queues up first is let in first. For work that must not
/// be done twice at a time, and for aggregates that everybody wants.
///
///     varve::Locks locks{store};
///     varve::Lock lock = locks.acquire("month-end", {.wait = 5s});
///     bank.transact([&](varve::Transaction& tx) {
///         tx.fenced_by(lock);                      // refused if the lock was lost meanwhile
///         ...
///     });
///
/// Not re-entrant: who acquires a lock twice waits for itself. Locks end with their handles; those must be gone before
/// their `Locks` is destroyed.
///
/// Threads: all methods may be called from any thread. The heartbeats of all its locks share one thread, which ends
/// with it.
class Locks {
  public:
    static constexpr Duration for_ever = Duration::max();

    /// InvalidError if the time to live is not positive.
    explicit Locks(std::shared_ptr<store::ItemStore> store, const LocksOptions& options = {}, Runtime runtime = {});
    ~Locks();
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

    /// Waits for its turn. Throws an Error of kind `busy` that names the lock if the wait is over before, and leaves no
    /// place in the queue behind; the store's errors if it does not answer for a time to live, or at the end of the
    /// wait.
    [[nodiscard]] Lock acquire(std::string_view name, const AcquireOptions& options = {});
    /// As `acquire`; nullopt if the wait is over.
    [[nodiscard]] std::optional<Lock> try_acquire(std::string_view name, const AcquireOptions& options = {});

    /// All of these, one after the other in the order of their names, so that two who want the same ones cannot wait
    /// for each other. The wait counts for all together: who runs out of it has none. In the order of names, each once.
    [[nodiscard]] std::vector<Lock> acquire_all(std::vector<std::string> names, const AcquireOptions& options = {});
    [[nodiscard]] std::optional<std::vector<Lock>> try_acquire_all(std::vector<std::string> names,
                                                                   const AcquireOptions& options = {});

    /// A lock as it stands in the store. Costs a query for every 1000 waiting.
    struct State {
        struct Waiting {
            locks::Ticket ticket;
            locks::Queued row;
        };
        locks::Holder holder;        ///< perhaps one whose time is over
        std::vector<Waiting> queue;  ///< in order; the holder's own place and expired ones too
    };
    State inspect(std::string_view name);

    /// For operators: takes the lock, or the place in its queue, from whoever drew `ticket`, as `inspect` shows it,
    /// without waiting for its time to be over. A holder that lives learns of it by its next heartbeat, and nothing
    /// that is fenced by its lock commits from now on; a waiter that lives queues up again in its old place. False:
    /// this ticket has neither, any more. The store's errors if it does not answer; then repeat it.
    ///
    ///     locks.evict("month-end", locks.inspect("month-end").holder.ticket);
    bool evict(std::string_view name, locks::Ticket ticket);

    /// For whoever tidies up in the background, as an Application does: reads the next page of all locks and removes
    /// places in queues whose time is over. Who joins a queue does that for itself; this is for queues that nobody
    /// joins any more. True: that was the last page, the next call begins anew. One thread at a time.
    bool collect_page();

    /// Heartbeats for what is due, all in one batch; tells how long until the next is. For owners without a heartbeat
    /// thread. Never throws the store's errors: what got no answer is tried again, until the time to live is over.
    Duration beat();

    const locks::Metrics& metrics() const { return metrics_; }

  private:
    friend class Lock;
    friend class locks::Held;
    class Acquisition;

    void ensure_table();
    struct Entered {
        locks::Holder holder;
        SteadyTime until;  ///< when its time to live is over, counted from before it was entered
    };
    Lock hold(const std::string& name, Entered entered, const AcquireOptions& options);
    void let_go(locks::Held& held) noexcept;
    void run(const std::stop_token& stop);

    const std::shared_ptr<store::ItemStore> store_;
    const LocksOptions options_;
    const Runtime runtime_;
    const std::unique_ptr<locks::Sightings> sightings_;
    std::optional<std::string> collected_;  // as far as collect_page has come
    locks::Metrics metrics_;
    std::mutex mutex_;
    std::condition_variable_any held_one_;
    std::atomic<bool> table_ensured_ = false;
    std::vector<std::shared_ptr<locks::Held>> held_;  // guarded by mutex_
    std::jthread heartbeats_;                         // guarded by mutex_; last: it uses all the others
};

}  // namespace varve
