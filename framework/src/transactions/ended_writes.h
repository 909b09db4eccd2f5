#pragma once

#include <varve/core/mutex.h>

#include <deque>
#include <new>
#include <set>
#include <string>

namespace varve::transactions {

/// The latest plain row writes of this process whose owners know that they were applied. Nobody will look for them in
/// their rows any more, so whoever of this process writes such a row again leaves them out. Therefore a row that few
/// processes write remembers few, however often they do.
///
/// Threads: all methods may be called from any thread.
class EndedWrites {
  public:
    void add(const std::string& id) noexcept try {
        const MutexLock lock{mutex_};
        in_order_.push_back(id);
        if (!ids_.insert(id).second) in_order_.pop_back();
        if (in_order_.size() <= size_max) return;
        ids_.erase(in_order_.front());
        in_order_.pop_front();
    } catch (const std::bad_alloc&) {
        // Then its row remembers it for the retention.
    }

    bool contains(const std::string& id) const {
        const MutexLock lock{mutex_};
        return ids_.contains(id);
    }

  private:
    static constexpr std::size_t size_max = 2000;

    mutable Mutex mutex_;
    std::set<std::string> ids_ VARVE_GUARDED_BY(mutex_);
    std::deque<std::string> in_order_ VARVE_GUARDED_BY(mutex_);
};

}  // namespace varve::transactions
