#include "commands/followers.h"

#include <varve/core/error.h>

#include <algorithm>
#include <string>
#include <utility>

namespace varve::detail {

void Followers::add(Application& application, Consumer consumer) {
    // It asks the store, and who commits meanwhile must not wait for that.
    const auto follower = std::make_shared<Follower>(application, idle_, std::move(consumer));
    const MutexLock lock{mutex_};
    if (is_closed_)
        throw InvalidError("the follower '" + follower->name() + "' cannot begin: its application is ending");
    if (std::ranges::any_of(all_, [&](const auto& one) { return one->name() == follower->name(); })) {
        throw ConfigError("there is a follower '" + follower->name() +
                          "' in this application already, and both would share one checkpoint; give the second one a "
                          "name of its own");
    }
    all_.push_back(follower);
    try {
        follower->start();  // last: one that runs may wait for this lock
    } catch (...) {
        all_.pop_back();
        throw;
    }
    if (sequencer_) sequencer_->wake();
}

bool Followers::remove(std::string_view name) {
    std::shared_ptr<Follower> removed;
    {
        const MutexLock lock{mutex_};
        const auto found =
            std::ranges::find(all_, name, [](const auto& one) -> std::string_view { return one->name(); });
        if (found == all_.end()) return false;
        if ((*found)->runs_this_thread()) {
            throw InvalidError("the follower '" + std::string{name} +
                               "' cannot be ended from its own handler, which would wait for itself; do it from "
                               "another thread");
        }
        removed = std::move(*found);
        all_.erase(found);
    }
    removed->end();
    return true;
}

void Followers::clear() {
    std::vector<std::shared_ptr<Follower>> all;
    {
        const MutexLock lock{mutex_};
        is_closed_ = true;
        all.swap(all_);
    }
    for (const std::shared_ptr<Follower>& one : all) one->end();
}

bool Followers::are_none() const {
    const MutexLock lock{mutex_};
    return all_.empty();
}

std::shared_ptr<Follower> Followers::get(std::string_view name) const {
    const MutexLock lock{mutex_};
    const auto found = std::ranges::find(all_, name, [](const auto& one) -> std::string_view { return one->name(); });
    if (found == all_.end()) {
        throw InvalidError("there is no follower '" + std::string{name} +
                           "' in this application; call follow or subscribe first, which lets another process do the "
                           "work if it does so already");
    }
    return *found;
}

std::vector<FollowerStatus> Followers::statuses() const {
    std::vector<std::shared_ptr<Follower>> all;
    {
        const MutexLock lock{mutex_};
        all = all_;
    }
    std::vector<FollowerStatus> statuses;
    for (const std::shared_ptr<Follower>& one : all) statuses.push_back(one->status());
    return statuses;
}

void Followers::wake_all() noexcept {
    const MutexLock lock{mutex_};
    for (const std::shared_ptr<Follower>& one : all_) one->wake();
}

}  // namespace varve::detail
