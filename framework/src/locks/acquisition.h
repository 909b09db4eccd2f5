#pragma once

#include <varve/core/retry.h>
#include <varve/locks/locks.h>

namespace varve {

/// One way through a lock's queue, from the ticket to the holder's item.
///
/// Threads: belongs to its caller's thread.
class Locks::Acquisition {
  public:
    Acquisition(Locks& locks, std::string name, const AcquireOptions& options);
    /// Leaves the queue, if it was not got through.
    ~Acquisition();
    Acquisition(const Acquisition&) = delete;
    Acquisition& operator=(const Acquisition&) = delete;

    /// Nullopt: the wait is over.
    std::optional<locks::Holder> run();

  private:
    /// A lock as it was looked at, not at one moment: the writes that follow are conditional.
    struct View {
        locks::Ticket drawn = 0;
        locks::Holder holder;
        std::vector<State::Waiting> rows;  // from the front, at most rows_looked_at
        bool more = false;                 // there are more rows before the last one asked for
    };

    /// One attempt at getting in; throws if the store gives no answer, and can then simply be repeated. The distance
    /// from the front; 0: in.
    std::size_t advance();
    View look(const std::string& last_part);
    /// What of the rows is alive and ahead; removes what has expired.
    std::size_t ahead(const View& view);
    void draw_ticket(locks::Ticket drawn);
    void queue_up();
    void enter(const locks::Holder& read);
    bool is_over() const;
    void pause(std::size_t distance);
    void leave(const RetryPolicy& policy);
    /// The answer to a single write; throws if there is none.
    store::WriteAnswer write(const store::Write& write);
    Time expiry() const { return clock().now() + l_.options_.time_to_live; }
    Clock& clock() const { return l_.runtime_.clock; }

    Locks& l_;
    const std::string name_;
    const AcquireOptions& options_;
    const std::string owner_;
    const SteadyTime began_;
    bool measured_ = false;                // the queue's length, for the metrics
    locks::Ticket ticket_ = 0;             // 0: none yet
    bool queued_ = false;                  // as far as is known
    bool maybe_queued_ = false;            // a row may be there
    Time queued_until_;                    // of the row, as last confirmed
    std::optional<locks::Holder> trying_;  // an entering that was sent and not answered
    std::optional<locks::Holder> entered_;
};

}  // namespace varve
