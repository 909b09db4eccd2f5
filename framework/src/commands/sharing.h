#pragma once

#include "commands/follower.h"
#include "store/sightings.h"

#include <varve/commands/application.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace varve::detail {

/// Spreads the partitions of a follower over the processes that have it, though none of these knows of another. Who has
/// none of them queues for the lock of one, now and then. Who has several looks at the queues of their locks, and lets
/// go of half of them if somebody waits there. So no process has several for long while another has none; what is free
/// is taken by whoever asks first.
///
/// Threads: belongs to one.
class Sharing {
  public:
    explicit Sharing(Application& application) : application_(application) {}

    /// Looks once, if the last look is some time ago. Errors: those of the store.
    void step(const std::vector<std::shared_ptr<Follower>>& partitions);

  private:
    void queue_for_one_of(const std::vector<std::shared_ptr<Follower>>& partitions);
    /// Of these, which are all here.
    void let_go_of_half_of(std::vector<std::shared_ptr<Follower>> partitions);
    /// Nobody queues for longer than Follower::queue_time_max: what stands in a queue for twice that is of somebody who
    /// has died. Their clock may be wrong by any amount.
    bool is_waited_for(const Follower& partition);

    Application& application_;
    store::Sightings sightings_;
    SteadyTime looks_at_{};
    SteadyTime queues_at_{};
    std::size_t queued_for_ = 0;
};

}  // namespace varve::detail
