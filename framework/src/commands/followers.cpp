#include "commands/followers.h"

#include "commands/application_parts.h"
#include "transactions/slot.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <string>
#include <utility>

namespace varve::detail {

void Followers::refuse_another(std::string_view name) const {
    if (std::ranges::none_of(all_, [&](const auto& one) { return one->name() == name; })) return;
    throw ConfigError("there is a follower '" + std::string{name} +
                      "' in this application already, and both would share one checkpoint; give the second one a name "
                      "of its own");
}

void Followers::add(Application& application, Consumer consumer) {
    bool is_first = false;
    {
        const MutexLock lock{mutex_};
        refuse_another(consumer.name);  // before it begins a rebuild
        is_first = watch_ == nullptr;
    }
    // It asks the store, and may commit: nobody who commits meanwhile must wait for that.
    const auto keeper = std::make_shared<Keeper>(application, idle_, std::move(consumer));
    // Before the follower looks for the first time: what is committed after that wakes it.
    std::shared_ptr<void> watch;
    if (is_first)
        watch = parts_of(application).coordinator.store().watch(transactions::events_table().name, [this]() noexcept {
            wake();
        });
    const MutexLock lock{mutex_};
    if (is_closed_) throw InvalidError("the follower '" + keeper->name() + "' cannot begin: its application is ending");
    refuse_another(keeper->name());
    if (!watch_) watch_.swap(watch);
    all_.push_back(keeper);
    try {
        keeper->start();  // last: one that runs may wait for this lock
    } catch (...) {
        all_.pop_back();
        throw;
    }
    if (sequencer_) sequencer_->wake();
}

bool Followers::remove(std::string_view name) {
    std::shared_ptr<Keeper> removed;
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
    std::vector<std::shared_ptr<Keeper>> all;
    std::shared_ptr<void> watch;
    {
        const MutexLock lock{mutex_};
        is_closed_ = true;
        all.swap(all_);
        watch.swap(watch_);
    }
    watch.reset();  // a call of it may wait for the lock
    for (const std::shared_ptr<Keeper>& one : all) one->stop_soon();
    for (const std::shared_ptr<Keeper>& one : all) one->end();
}

bool Followers::are_none() const {
    const MutexLock lock{mutex_};
    return all_.empty();
}

namespace {

[[noreturn]] void throw_none(std::string_view name) {
    throw InvalidError("there is no follower '" + std::string{name} +
                       "' in this application; call follow or subscribe first, which lets another process do the "
                       "work if it does so already");
}

}  // namespace

std::shared_ptr<Keeper> Followers::keeper(std::string_view name) const {
    const MutexLock lock{mutex_};
    const auto found = std::ranges::find(all_, name, [](const auto& one) -> std::string_view { return one->name(); });
    if (found == all_.end()) throw_none(name);
    return *found;
}

std::vector<std::string> Followers::projections() const {
    const MutexLock lock{mutex_};
    std::vector<std::string> names;
    for (const std::shared_ptr<Keeper>& one : all_) {
        if (one->is_projection()) names.push_back(one->name());
    }
    return names;
}

std::vector<std::shared_ptr<Follower>> Followers::get(std::string_view name) const {
    const MutexLock lock{mutex_};
    for (const std::shared_ptr<Keeper>& one : all_) {
        if (std::vector<std::shared_ptr<Follower>> found = one->followers(name); !found.empty()) return found;
    }
    throw_none(name);
}

std::vector<FollowerStatus> Followers::statuses() const {
    std::vector<std::shared_ptr<Keeper>> all;
    {
        const MutexLock lock{mutex_};
        all = all_;
    }
    std::vector<FollowerStatus> statuses;
    for (const std::shared_ptr<Keeper>& one : all) one->add_statuses(statuses);
    return statuses;
}

void Followers::wake_all() noexcept {
    const MutexLock lock{mutex_};
    for (const std::shared_ptr<Keeper>& one : all_) one->wake();
}

}  // namespace varve::detail
