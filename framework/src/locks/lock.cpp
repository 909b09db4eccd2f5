#include "core/what_was_thrown.h"
#include "locks/held.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve {
namespace locks {

Held::Held(LockService& service, std::string name, Holder holder, SteadyTime until, std::function<void()> on_lost)
    : service_(service),
      name_(std::move(name)),
      holder_(std::move(holder)),
      since_(service.runtime().clock.get().steady_now()),
      on_lost_(std::move(on_lost)),
      until_(until),
      next_beat_(until - service.options().time_to_live / 2),
      stored_expiry_(holder_.expires) {}

bool Held::is_lost() {
    const MutexLock lock{mutex_};
    if (!released_ && why_.empty() && service_.runtime().clock.get().steady_now() >= until_) {
        lose("no heartbeat got through before its time was over");
    }
    return !why_.empty();
}

void Held::check() {
    const MutexLock lock{mutex_};
    if (is_lost()) throw LeaseLostError("the lock '" + name_ + "' was lost: " + why_);
    if (released_) throw LeaseLostError("the lock '" + name_ + "' was released before");
}

void Held::lose(std::string why) {
    why_ = std::move(why);
    ++service_.metrics().lost;
    over();
    lost_.request_stop();
    if (!on_lost_) return;
    try {
        on_lost_();
    } catch (...) {
        try_to_log(service_.runtime().log, LogLevel::warning,
                   [&] { return "on_lost of the lock '" + name_ + "' has thrown " + what_was_thrown(); });
    }
}

bool Held::end() {
    const MutexLock lock{mutex_};
    if (released_) return false;
    if (!is_lost()) over();
    released_ = true;
    return true;
}

void Held::over() {
    const Duration held = service_.runtime().clock.get().steady_now() - since_;
    service_.metrics().held_us += static_cast<std::uint64_t>(std::max<Duration::rep>(held.count(), 0));
    --service_.metrics().holding;
}

SteadyTime Held::next_beat() const {
    const MutexLock lock{mutex_};
    return released_ || !why_.empty() ? SteadyTime::max() : next_beat_;
}

std::optional<Holder> Held::extended(SteadyTime now) {
    const MutexLock lock{mutex_};
    if (released_ || is_lost() || now < next_beat_) return std::nullopt;
    Holder next = holder_;
    next.expires = later_expiry(service_.runtime().clock, service_.options().time_to_live, stored_expiry_);
    return next;
}

void Held::confirmed(SteadyTime sent, Time expires) {
    const MutexLock lock{mutex_};
    until_ = sent + service_.options().time_to_live;
    next_beat_ = sent + service_.options().time_to_live / 2;
    stored_expiry_ = expires;
    ++service_.metrics().heartbeats;
}

void Held::unanswered() {
    const MutexLock lock{mutex_};
    next_beat_ = service_.runtime().clock.get().steady_now() + service_.options().time_to_live / 16;
}

void Held::refused(const Holder& current) {
    const MutexLock lock{mutex_};
    if (released_ || is_lost()) return;
    if (current.revision() == holder_.revision()) {
        // An earlier heartbeat got through that had it expire later. Nobody knows when; the next one goes beyond it.
        stored_expiry_ = current.expires;
        next_beat_ = service_.runtime().clock.get().steady_now();
    } else if (current.is_free() && current.fence == holder_.fence) {
        lose("it was taken away, as Locks::evict does");
    } else {
        lose("somebody else has entered it since, it is at fence " + std::to_string(current.fence));
    }
}

Held& held(const Lock& lock) {
    return *lock.held_;
}

}  // namespace locks

Lock& Lock::operator=(Lock&& other) noexcept {
    if (this != &other) {
        release();
        held_ = std::move(other.held_);
    }
    return *this;
}

const std::string& Lock::name() const {
    return held_->name();
}

locks::Fence Lock::fence() const {
    return held_->holder().fence;
}

locks::Ticket Lock::ticket() const {
    return held_->holder().ticket;
}

bool Lock::is_lost() const {
    return held_->is_lost();
}

void Lock::check() const {
    held_->check();
}

std::stop_token Lock::lost() const {
    return held_->lost();
}

void Lock::release() noexcept {
    if (held_ && held_->end()) held_->service().let_go(*held_);
}

}  // namespace varve
