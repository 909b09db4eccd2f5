#pragma once

#include "locks/lock_service.h"
#include "transactions/plan.h"

#include <varve/core/mutex.h>

#include <atomic>

namespace varve::locks {

/// What a handle and the heartbeat share about one lock.
///
/// Threads: all methods may be called from any thread. Whoever is told of the loss runs under the mutex, so that nobody
/// is told after the release; it may ask and release the lock, hence a recursive one.
class Held {
  public:
    /// `until`: when its time to live is over, counted from before it was entered.
    Held(LockService& service, std::string name, Holder holder, SteadyTime until, std::function<void()> on_lost);

    const std::string& name() const { return name_; }
    const Holder& holder() const { return holder_; }  ///< as it was when it was entered
    LockService& service() const { return service_; }
    std::stop_token lost() const { return lost_.get_token(); }

    /// What a transaction must still find as it commits: the holder in its present revision.
    transactions::RowRead condition() const { return {.key = holder_key(name_), .rev = holder_.revision()}; }

    bool is_lost();
    void check();
    /// True for the first caller: it must tell the store.
    bool end();

    // For the heartbeat.

    /// When it is to come; SteadyTime::max() if no longer.
    SteadyTime next_beat() const;
    /// The holder with the expiry that a heartbeat sent at `now` gives it; nullopt: there is none to send.
    std::optional<Holder> extended(SteadyTime now);
    /// The heartbeat that was sent at `sent` got through.
    void confirmed(SteadyTime sent, Time expires);
    void unanswered();
    void refused(const Holder& current);

  private:
    void lose(std::string why) VARVE_REQUIRES(mutex_);
    void over();

    LockService& service_;
    const std::string name_;
    const Holder holder_;
    const SteadyTime since_;
    const std::function<void()> on_lost_;
    mutable RecursiveMutex mutex_;
    SteadyTime until_ VARVE_GUARDED_BY(mutex_);
    SteadyTime next_beat_ VARVE_GUARDED_BY(mutex_);
    Time stored_expiry_ VARVE_GUARDED_BY(mutex_);
    bool released_ VARVE_GUARDED_BY(mutex_) = false;
    std::string why_ VARVE_GUARDED_BY(mutex_);  // not empty: lost
    std::stop_source lost_;
};

}  // namespace varve::locks
