#pragma once

#include "commands/keeper.h"

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

namespace varve::detail {

/// The followers of an application.
///
/// Threads: all methods may be called from any thread.
class Followers {
  public:
    /// ConfigError for a second one of this name, InvalidError after clear(), and what a Keeper's constructor throws.
    void add(Application& application, Consumer consumer);
    /// Ends it when its batch is done. False: there is none of this name. InvalidError if it is called from its own
    /// handler, which would wait for itself.
    bool remove(std::string_view name);
    /// Ends all of them, and lets nobody begin any more.
    void clear();
    /// InvalidError if there is none.
    std::shared_ptr<Keeper> keeper(std::string_view name) const;
    /// Those that keep rows: their names.
    std::vector<std::string> projections() const;
    /// Of all partitions of the live build, or by build_name, or of one by partition_name. InvalidError if there is
    /// none.
    std::vector<std::shared_ptr<Follower>> get(std::string_view name) const;
    std::vector<FollowerStatus> statuses() const;

    bool are_none() const;

    /// Something has been committed: nobody needs to wait for the next poll. Takes no lock while nobody is idle.
    void wake() noexcept {
        if (sequencer_) {
            sequencer_->wake();
        } else if (idle_.load() > 0) {
            wake_all();
        }
    }
    /// Something is there to be followed.
    void wake_all() noexcept;
    /// They see what is committed when this loop has put it in order. It must outlive them. Before anybody wakes them.
    void come_after(BackgroundLoop& sequencer) { sequencer_ = &sequencer; }

  private:
    void refuse_another(std::string_view name) const VARVE_REQUIRES(mutex_);

    BackgroundLoop* sequencer_ = nullptr;
    std::atomic<int> idle_ = 0;
    mutable Mutex mutex_;
    std::shared_ptr<void> watch_ VARVE_GUARDED_BY(mutex_);  // of what other processes commit
    std::vector<std::shared_ptr<Keeper>> all_ VARVE_GUARDED_BY(mutex_);
    bool is_closed_ VARVE_GUARDED_BY(mutex_) = false;
};

}  // namespace varve::detail
