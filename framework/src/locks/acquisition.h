#pragma once

#include "locks/lock_service.h"

#include <varve/core/retry.h>

namespace varve::locks {

/// One way through a lock's queue, from the ticket to the holder's item.
///
/// Threads: belongs to its caller's thread.
class Acquisition {
  public:
    Acquisition(LockService& service, std::string name, const AcquireOptions& options);
    /// Leaves the queue, if it was not got through.
    ~Acquisition();
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;

    /// Nullopt: the wait is over.
    std::optional<LockService::Entered> run();

  private:
    /// A lock as it was looked at, not at one moment: the writes that follow are conditional.
    struct View {
        Ticket drawn = 0;
        Holder holder;
        std::size_t ahead = 0;      // places of others that are alive; counting ends at rows_looked_at
        std::optional<Queued> own;  // the own place
        bool complete = true;       // all places were seen up to the last one asked for
    };

    /// One attempt at getting in; throws if the store gives no answer, and can then simply be repeated. The distance
    /// from the front; 0: in.
    std::size_t advance();
    /// Removes on its way the places whose time is over.
    View look(const std::string& last_part);
    bool is_free(const Holder& holder) const;
    void draw_ticket(Ticket drawn);
    void queue_up();
    void enter(const Holder& read);
    bool is_over() const;
    void pause(std::size_t distance);
    void leave(const RetryPolicy& policy);
    /// The answer to a single write; throws if there is none.
    store::WriteAnswer write(const store::Write& write);
    Queued place() const;
    Clock& clock() const { return service_.runtime().clock; }

    LockService& service_;
    const std::string name_;
    const AcquireOptions& options_;
    const std::string owner_;
    const SteadyTime began_;
    bool measured_ = false;         // the queue's length, for the metrics
    Ticket ticket_ = 0;             // 0: none yet
    bool queued_ = false;           // as far as is known
    bool maybe_queued_ = false;     // a row may be there
    SteadyTime renew_at_{};         // of the row, when half of its time is over
    Time stored_expiry_{};          // of the row, as last known
    std::optional<Holder> trying_;  // an entering that was sent and not answered
    SteadyTime trying_since_{};     // the first of these
    std::optional<LockService::Entered> entered_;
};

}  // namespace varve::locks
