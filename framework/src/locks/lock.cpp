#include "held.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve {
namespace locks {

Held::Held(Locks& locks, std::string name, Holder holder, SteadyTime until, std::function<void()> on_lost)
    : locks_(locks),
      name_(std::move(name)),
      holder_(std::move(holder)),
      since_(locks.runtime_.clock.get().steady_now()),
      on_lost_(std::move(on_lost)),
      until_(until),
      next_beat_(until - locks.options_.time_to_live / 2),
      stored_expiry_(holder_.expires) {}

bool Held::is_lost() {
    const std::lock_guard lock{mutex_};
    if (!released_ && why_.empty() && locks_.runtime_.clock.get().steady_now() >= until_) {
        lose("no heartbeat got through before its time was over");
    }
    return !why_.empty();
}

void Held::check() {
    const std::lock_guard lock{mutex_};
    if (is_lost()) throw LeaseLostError("the lock '" + name_ + "' was lost: " + why_);
    if (released_) throw LeaseLostError("the lock '" + name_ + "' was released before");
}

void Held::lose(std::string why) {
    why_ = std::move(why);
    ++locks_.metrics_.lost;
    over();
    lost_.request_stop();
    if (!on_lost_) return;
    const auto drop = [&](const std::string& what) {
        locks_.runtime_.log.get().write(LogLevel::warning, "on_lost of the lock '" + name_ + "' has thrown " + what);
    };
    try {
        on_lost_();
    } catch (const std::exception& error) {
        drop(error.what());
    } catch (...) {
        drop("what is no std::exception");
    }
}

bool Held::end() {
    const std::lock_guard lock{mutex_};
    if (released_) return false;
    if (!is_lost()) over();
    released_ = true;
    return true;
}

void Held::over() {
    const Duration held = locks_.runtime_.clock.get().steady_now() - since_;
    locks_.metrics_.held_us += static_cast<std::uint64_t>(std::max<Duration::rep>(held.count(), 0));
    --locks_.metrics_.holding;
}

SteadyTime Held::next_beat() const {
    const std::lock_guard lock{mutex_};
    return released_ || !why_.empty() ? SteadyTime::max() : next_beat_;
}

std::optional<Holder> Held::extended(SteadyTime now) {
    const std::lock_guard lock{mutex_};
    if (released_ || is_lost() || now < next_beat_) return std::nullopt;
    Holder next = holder_;
    next.expires = later_expiry(locks_.runtime_.clock, locks_.options_.time_to_live, stored_expiry_);
    return next;
}

void Held::confirmed(SteadyTime sent, Time expires) {
    const std::lock_guard lock{mutex_};
    until_ = sent + locks_.options_.time_to_live;
    next_beat_ = sent + locks_.options_.time_to_live / 2;
    stored_expiry_ = expires;
    ++locks_.metrics_.heartbeats;
}

void Held::unanswered() {
    const std::lock_guard lock{mutex_};
    next_beat_ = locks_.runtime_.clock.get().steady_now() + locks_.options_.time_to_live / 16;
}

void Held::refused(const Holder& current) {
    const std::lock_guard lock{mutex_};
    if (released_ || is_lost()) return;
    if (current.revision() == holder_.revision()) {
        // An earlier heartbeat got through that had it expire later. Nobody knows when; the next one goes beyond it.
        stored_expiry_ = current.expires;
        next_beat_ = locks_.runtime_.clock.get().steady_now();
    } else if (current.is_free() && current.fence == holder_.fence) {
        lose("it was taken away, as Locks::evict does");
    } else {
        lose("somebody else has entered it since, it is at fence " + std::to_string(current.fence));
    }
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
    if (held_ && held_->end()) held_->locks().let_go(*held_);
}

transactions::RowRead Lock::condition() const {
    return {.key = locks::holder_key(held_->name()), .rev = held_->holder().revision()};
}

const store::ItemStore& Lock::store() const {
    return *held_->locks().store_;
}

}  // namespace varve
