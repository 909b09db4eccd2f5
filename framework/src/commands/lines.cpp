#include "commands/lines.h"

#include "core/assert.h"
#include "transactions/settled_reader.h"

#include <algorithm>

namespace varve::detail {

namespace {

// Of a long line most wait for the same others. Who is not looked at finds out by himself after `patience`.
constexpr std::size_t looked_at_max = 32;

}  // namespace

bool Lines::Places::enter(const std::set<std::string>& names, SteadyTime until) {
    Clock& clock = lines_.runtime_.clock;
    const SteadyTime began = clock.steady_now();
    {
        const MutexLock lock{lines_.mutex_};
        const auto is_missing = [&](const std::string& name)
                                    VARVE_REQUIRES(lines_.mutex_) { return !lines_.stands_in(*this, name); };
        if (std::ranges::none_of(names, is_missing)) return false;
        if (arrival_ == 0) lines_.come(*this);
        const bool went = goes_.exchange(false);
        if (went) {
            lines_.all_.stop(arrival_);
            for (const auto& line : in_) line->second.stop(arrival_);
        }
        for (const std::string& name : names) {
            if (is_missing(name)) lines_.take_place(*this, name);
        }
        if (lines_.kept_back_in(*this, began) == nullptr) {
            lines_.go(*this, began);
            return false;
        }
        wake_ = std::stop_source{};
        if (went) {
            for (const auto& line : in_) lines_.let_one_go(line->second, began);
        }
    }
    for (SteadyTime now = began; !goes_; now = clock.steady_now()) {
        if (now >= until) give_up();
        clock.sleep_for(std::min(until - now, lines_.patience_), wake_.get_token());
        if (goes_) break;
        // Nobody is told when the time of those who go is over.
        const MutexLock lock{lines_.mutex_};
        const SteadyTime later = clock.steady_now();
        if (!goes_ && lines_.kept_back_in(*this, later) == nullptr) lines_.go(*this, later);
    }
    waited_ += clock.steady_now() - began;
    return true;
}

void Lines::Places::give_up() {
    std::string name;
    {
        const MutexLock lock{lines_.mutex_};
        const std::string* const line =
            goes_ ? nullptr : lines_.kept_back_in(*this, lines_.runtime_.clock.get().steady_now());
        name = line != nullptr ? *line : in_.front()->first;
    }
    leave();
    throw transactions::BlockedError("others of this process who write '" + name + "' were before it all the time",
                                     {.item = name});
}

void Lines::Places::leave() noexcept {
    if (arrival_ == 0) return;
    const SteadyTime now = lines_.runtime_.clock.get().steady_now();
    const MutexLock lock{lines_.mutex_};
    lines_.all_.leave(arrival_);
    std::erase_if(in_, [&](const ByName::iterator line) VARVE_REQUIRES(lines_.mutex_) {
        line->second.leave(arrival_);
        if (!line->second.is_empty()) return false;
        lines_.by_name_.erase(line);
        return true;
    });
    for (const auto& line : in_) lines_.let_one_go(line->second, now);
    in_.clear();
    goes_ = false;
    arrival_ = 0;
    lines_.standing_.fetch_sub(1, std::memory_order_relaxed);
}

void Lines::come(Places& one) {
    all_.waiting.emplace(arrivals_ + 1, &one);
    one.arrival_ = ++arrivals_;
    standing_.fetch_add(1, std::memory_order_relaxed);
}

bool Lines::stands_in(const Places& one, const std::string& name) const {
    const auto line = by_name_.find(name);
    if (line == by_name_.end()) return false;
    return line->second.waiting.contains(one.arrival_) || line->second.going.contains(one.arrival_);
}

void Lines::take_place(Places& one, const std::string& name) {
    if (one.in_.size() == one.in_.capacity()) one.in_.reserve(2 * one.in_.size() + 2);
    const auto line = by_name_.try_emplace(name).first;
    try {
        line->second.waiting.emplace(one.arrival_, &one);
    } catch (...) {
        if (line->second.is_empty()) by_name_.erase(line);
        throw;
    }
    one.in_.push_back(line);
}

const std::string* Lines::kept_back_in(const Places& one, SteadyTime now) const {
    VARVE_ASSERT(!all_.waiting.empty(), "who asks whether he may go is waiting himself");
    const Places* const oldest = all_.waiting.begin()->second;
    for (const auto& line : one.in_) {
        const bool is_kept_free = oldest != &one && line->second.waiting.begin()->second == oldest;
        if (is_kept_free || is_taken(line->second, now)) return &line->first;
    }
    return nullptr;
}

bool Lines::is_taken(const Line& line, SteadyTime now) const {
    return std::ranges::any_of(line.going, [&](const auto& other) { return now - other.second->went_ < patience_; });
}

void Lines::go(Places& one, SteadyTime now) noexcept {
    VARVE_ASSERT(!one.goes_, "who goes was waiting");
    all_.go(one.arrival_);
    for (const auto& line : one.in_) line->second.go(one.arrival_);
    one.went_ = now;
    one.goes_ = true;
    one.wake_.request_stop();
}

void Lines::let_one_go(Line& line, SteadyTime now) noexcept {
    if (is_taken(line, now)) return;
    std::size_t looked_at = 0;
    for (const auto& [arrival, one] : line.waiting) {
        if (kept_back_in(*one, now) == nullptr) return go(*one, now);
        if (++looked_at == looked_at_max) return;
    }
}

}  // namespace varve::detail
