#pragma once

#include <varve/core/runtime.h>
#include <varve/locks/options.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

class Lock;

namespace store {
class ItemStore;
}

namespace locks {
class Held;
class LockService;
struct Metrics;
Held& held(const Lock& lock);  // for the framework

/// Numbers the places in a lock's queue: 1, 2, 3 … Each is given once.
using Ticket = std::int64_t;
/// How often a lock was entered. The count when a holder entered is its fencing token.
using Fence = std::int64_t;

/// A place in the queue.
struct Queued {
    std::string owner;
    Time expires;
    Duration time_to_live = {};  ///< zero: not said
    bool operator==(const Queued&) const = default;
};

/// Who has the lock.
struct Holder {
    Fence fence = 0;         ///< 0: it was never entered
    std::string owner = {};  ///< empty: free
    Ticket ticket = 0;
    Time expires = {};           ///< if there is an owner
    Duration time_to_live = {};  ///< zero: not said

    bool is_free() const { return owner.empty(); }
    /// The owner's claim, in the form of a place in the queue.
    Queued claim() const { return {.owner = owner, .expires = expires, .time_to_live = time_to_live}; }
    /// The revision of the stored row; nullopt: there is no row.
    std::optional<std::string> revision() const;
    bool operator==(const Holder&) const = default;
};

}  // namespace locks

/// A lock that is held, until it is released, destroyed, or lost. Made by Locks::acquire.
///
/// A lock gives order, not safety: its holder may sleep past its time to live, and then somebody else enters. What two
/// must not do belongs in a transaction that the lock fences (Transaction::fenced_by): it commits only if the lock is
/// still in the same hands. A lock that was lost stays lost.
///
/// Threads: any thread may ask; one at a time moves or releases it. Must not outlive its `Locks`.
class Lock {
  public:
    ~Lock() { release(); }
    Lock(Lock&& other) noexcept = default;
    Lock& operator=(Lock&& other) noexcept;

    const std::string& name() const;
    /// The fencing token: grows whenever anybody enters this lock, for ever. Pass it to what lies outside the store,
    /// which should refuse tokens smaller than the largest it has seen.
    locks::Fence fence() const;
    locks::Ticket ticket() const;

    /// Whether somebody else may have entered: a heartbeat was refused, or none got through in time. Asks no store.
    bool is_lost() const;
    /// Throws a LeaseLostError that names the lock and says why, if it is lost or was released.
    void check() const;
    /// Stop is requested when the lock is lost.
    std::stop_token lost() const;

    /// Lets the next one in. Harmless when repeated, or after a loss. If the store does not answer, the lock expires by
    /// itself.
    void release() noexcept;

  private:
    friend class locks::LockService;
    friend locks::Held& locks::held(const Lock& lock);
    explicit Lock(std::shared_ptr<locks::Held> held) : held_(std::move(held)) {}

    std::shared_ptr<locks::Held> held_;  // nullptr: moved from
};

struct AcquireOptions {
    /// How long to queue for: zero gives up at once if anybody is ahead, Locks::for_ever never does.
    Duration wait = std::chrono::seconds{15};
    /// Called once if the lock is lost, by the thread that notices: that of the heartbeats, unless somebody asks the
    /// lock first. Must not wait for anybody. What it throws is logged and dropped.
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
/// Not re-entrant: whoever acquires a lock twice waits for itself. Locks end with their handles. All handles must be
/// gone before their `Locks` is destroyed.
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

    /// Waits for its turn. If the wait is over first, throws an Error of kind `busy` that names the lock, and leaves no
    /// place in the queue behind. Throws the store's errors if it does not answer for a time to live, or at the end of
    /// the wait.
    [[nodiscard]] Lock acquire(std::string_view name, const AcquireOptions& options = {});
    /// As `acquire`; nullopt if the wait is over.
    [[nodiscard]] std::optional<Lock> try_acquire(std::string_view name, const AcquireOptions& options = {});

    /// All of these, one after the other in the order of their names, so that two who want the same ones cannot wait
    /// for each other. The wait counts for all together: if it runs out, none is held. Returns each lock once, in the
    /// order of names.
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
    /// this ticket has neither any longer. The store's errors if it does not answer; then repeat it.
    ///
    ///     locks.evict("month-end", locks.inspect("month-end").holder.ticket);
    bool evict(std::string_view name, locks::Ticket ticket);

    /// For whoever tidies up in the background, as an Application does: reads the next page of all locks and removes
    /// places in queues whose time is over. Who joins a queue does that for itself; this is for queues that nobody
    /// joins any more. True: that was the last page, the next call begins anew. One thread at a time.
    bool collect_page();

    /// Sends the heartbeats that are due, all in one batch, and returns how long it is until the next. For owners
    /// without a heartbeat thread. Never throws the store's errors: a heartbeat without an answer is tried again, until
    /// the time to live is over.
    Duration beat();

    const locks::Metrics& metrics() const;  // locks/metrics.h

  private:
    const std::unique_ptr<locks::LockService> service_;
};

}  // namespace varve
