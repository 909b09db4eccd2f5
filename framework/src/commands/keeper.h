#pragma once

#include "commands/build.h"
#include "commands/build_emptying.h"
#include "commands/follower.h"
#include "commands/sharing.h"
#include "core/background_loop.h"

#include <varve/commands/follower_status.h>
#include <varve/core/mutex.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

/// Keeps the rows of one projection, or does what one subscription does. A projection may have two builds (build.h):
/// the live one, and the next while it is rebuilt. Each has a Follower for each of its partitions; a thread of the
/// keeper's own looks at the Builds row now and then, and sees to it that they are the right ones: it runs those that
/// are made by this program's version, begins a build for a version that is higher than the live one, and when it
/// begins for another number of partitions, stops when a higher version is live, and empties what was replaced.
///
/// Threads: all methods may be called from any thread; end() and the destructor not from a follower's own.
class Keeper {
  public:
    /// ConfigError for options that cannot work, for a version below the live one, for one above it or another number
    /// of partitions of a projection that cannot be rebuilt, and for another number of a subscription. Where
    /// the store does not answer, its first turns find out.
    Keeper(Application& application, std::atomic<int>& idle, Consumer consumer);
    ~Keeper() { end(); }
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

    /// Once.
    void start();
    /// For whoever has not started it: looks at the Builds row, does what is to be done, and returns when to look
    /// again.
    Duration turn();
    /// As Follower::end.
    void end();
    /// As Follower::stop_soon.
    void stop_soon() noexcept;

    const std::string& name() const { return consumer_.name; }
    bool is_projection() const { return is_projection_; }
    bool runs_this_thread() const;
    void wake() noexcept;
    /// Of the live build under the keeper's name, else by build_name, or the one by partition_name; empty: there is
    /// none.
    std::vector<std::shared_ptr<Follower>> followers(std::string_view name) const;
    /// What keeps the rows that are read now, as the store says. ConfigError if that is another version than this
    /// program's, InvalidError for a subscription.
    Consumer live_consumer();
    void add_statuses(std::vector<FollowerStatus>& to) const;
    /// Whether what this command has written, and put in place, is in the rows that are read; of an empty receipt:
    /// everything that was acknowledged. Waits until it is, its follower has stopped, or the time is over.
    bool wait(const Receipt& receipt, SteadyTime until) const;
    /// As Follower::has_parked.
    bool has_parked(const Receipt& receipt) const;

    /// Begins the next build; harmless while it is being made. ConfigError as in the constructor, InvalidError for a
    /// subscription.
    void rebuild();
    /// InvalidError if nothing is being rebuilt.
    void set_paused(bool paused);

  private:
    struct Kept {
        Build build;
        std::vector<std::shared_ptr<Follower>> followers;  // one for each partition
        bool is(const Build& other) const {
            return !followers.empty() && build.number == other.number && build.version == other.version &&
                   build.partitions == other.partitions;
        }
    };

    /// Has the followers of these builds, and no others.
    void arrange(const Builds& builds);
    Kept kept(const Build& build);
    /// Of all its partitions together.
    Consumer consumer_of(const Build& build) const;
    std::vector<Consumer> consumers_of(const Build& build);
    /// How fast one of the partitions of the next build goes. The first one sees to it that it becomes live.
    std::function<Duration(store::Position, std::int64_t)> pace_of(
        const Consumer& one, const std::shared_ptr<const std::vector<Consumer>>& all);
    /// Whether what is left up to where the live build is may fit into one transaction. `at`: where the first is.
    bool is_near(store::Position at, const std::vector<Consumer>& next) const;
    /// False: not yet.
    bool swap(const std::vector<Consumer>& next);
    bool wants_build(const Builds& builds) const;
    /// `anew`: also if this version is live.
    void begin(bool anew);
    /// ConfigError if it writes rows that say nothing of it.
    void check_that_it_keeps() const;
    /// What this receipt is about is theirs; of an empty one: all of the live ones.
    std::vector<std::shared_ptr<Follower>> live_followers(const Receipt& receipt) const;
    /// A few rows of what was replaced; false: there is nothing to do.
    bool empty_some(const Builds& builds);
    /// Lets other processes have some of what is here.
    void share();
    void wake_loop();
    void stopped(const std::string& why);

    Application& application_;
    std::atomic<int>& idle_;
    const Consumer consumer_;
    const bool is_projection_;
    bool has_looked_ = false;  // at what the store says, and agrees

    std::atomic<std::int64_t> next_number_ = 0;  // 0: there is none
    std::atomic<bool> paused_ = false;
    std::optional<Lock> emptying_lock_;
    std::optional<BuildEmptying> emptying_;
    Sharing sharing_of_live_{application_};
    Sharing sharing_of_next_{application_};

    mutable Mutex mutex_;
    Kept live_ VARVE_GUARDED_BY(mutex_);
    Kept next_ VARVE_GUARDED_BY(mutex_);
    std::string error_ VARVE_GUARDED_BY(mutex_);
    BackgroundLoop loop_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::detail
