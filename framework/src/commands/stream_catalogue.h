#pragma once

#include "commands/checkpoint.h"
#include "commands/consumer.h"
#include "feed/feed.h"

#include <varve/core/mutex.h>
#include <varve/transactions/options.h>

#include <optional>
#include <string_view>

namespace varve {
struct StreamListPage;
}

namespace varve::detail {

struct ApplicationParts;

/// Which streams there are: a row for each (stream_row.h), made from the feed as by a follower, but by nobody in the
/// background. Who asks for a list takes what the feed has beyond the checkpoint `$streams`, in transactions that move
/// it (advance.h), and then reads the rows. Several may do so at once, in any number of processes.
///
/// Threads: all methods may be called from any thread; one at a time brings the rows up to date.
class StreamCatalogue {
  public:
    explicit StreamCatalogue(ApplicationParts& parts);

    /// The streams with names that begin with `prefix`. Errors: those of Application::streams.
    StreamListPage page(std::string_view prefix, const PageOptions& options);

  private:
    /// All that was acknowledged before this call has its row.
    void catch_up();
    /// Whether there was anything before `end` that had not been taken.
    bool take_until(store::Position end) VARVE_REQUIRES(mutex_);
    void take(const feed::Batch& batch) VARVE_REQUIRES(mutex_);
    /// Until when to wait for others: whoever has died is found to be dead after a lease.
    SteadyTime until_it_is_over() const;

    ApplicationParts& parts_;
    const Consumer consumer_;
    Mutex mutex_;
    std::optional<feed::Feed> feed_ VARVE_GUARDED_BY(mutex_);
    Checkpoint checkpoint_ VARVE_GUARDED_BY(mutex_);     // as it was last known
    store::Position seen_ VARVE_GUARDED_BY(mutex_) = 0;  // ahead of that by what has no first slots
};

}  // namespace varve::detail
