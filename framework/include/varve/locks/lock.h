#pragma once

#include <varve/locks/stored_lock.h>
#include <varve/transactions/plan.h>

#include <memory>
#include <stop_token>
#include <string>

namespace varve {

class Locks;

namespace locks {
class Held;
}

/// A lock that is held, until it is released, destroyed, or lost. Made by Locks::acquire.
///
/// A lock gives order, not safety: its holder may sleep past its time to live, and then somebody else enters. What must
/// not be done by two is done in a transaction that is fenced by the lock (Transaction::fenced_by): it commits only if
/// the lock is still in the same hands. A lock that was lost stays lost.
///
/// Threads: any thread may ask; one at a time moves or releases it. Must not outlive its `Locks`.
class Lock {
  public:
    ~Lock() { release(); }
    Lock(Lock&& other) noexcept = default;
    Lock& operator=(Lock&& other) noexcept;

    const std::string& name() const;
    /// The fencing token: grows with every entering of this lock, by anybody, for ever. For what lies outside the
    /// store: let it refuse tokens smaller than the largest it has seen.
    locks::Fence fence() const;
    locks::Ticket ticket() const;

    /// Whether somebody else may have entered: a heartbeat was refused, or none got through in time. Asks no store.
    bool is_lost() const;
    /// LeaseLostError that names the lock and says why if it is lost or was released.
    void check() const;
    /// Stop is requested when the lock is lost.
    std::stop_token lost() const;

    /// Lets the next one in. Harmless when repeated or lost. What the store does not answer expires by itself.
    void release() noexcept;

    /// What a transaction must still find as it commits: the holder in its present revision.
    transactions::RowRead condition() const;
    /// Where the lock is kept: only a transaction on the same store can rest on it.
    const store::ItemStore& store() const;

  private:
    friend class Locks;
    explicit Lock(std::shared_ptr<locks::Held> held) : held_(std::move(held)) {}

    std::shared_ptr<locks::Held> held_;  // nullptr: moved from
};

}  // namespace varve
