#include "lines.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <stop_token>
#include <thread>

#include <oneapi/tbb/concurrent_hash_map.h>

namespace varve::detail {

struct Lines::Place {
    std::atomic<bool> goes{false};
    std::stop_source wake{std::nostopstate};
};

/// Whoever holds an accessor to a line has it for himself. With the standard allocator, because the thread sanitizer
/// cannot see into oneTBB's.
struct Lines::Directory {
    using Line = std::deque<Place*>;
    oneapi::tbb::concurrent_hash_map<std::string, Line, oneapi::tbb::tbb_hash_compare<std::string>,
                                     std::allocator<std::pair<const std::string, Line>>>
        by_name;
    using accessor = decltype(by_name)::accessor;
};

Lines::Lines(Runtime runtime, Duration patience)
    : runtime_(runtime), patience_(patience), lines_(std::make_unique<Directory>()) {}

Lines::~Lines() = default;

Lines::Places::Places(Lines& lines) : lines_(lines) {}

Lines::Places::~Places() {
    leave();
}

bool Lines::Places::enter(const std::set<std::string>& names) {
    std::set<std::string> missing;
    for (const std::string& name : names) {
        if (!places_.contains(name)) missing.insert(name);
    }
    if (missing.empty()) return false;
    if (!places_.empty() && *missing.begin() < places_.rbegin()->first) {
        for (const auto& [name, place] : places_) missing.insert(name);
        leave();
    }
    bool waited = false;
    for (const std::string& name : missing) {
        const auto [at, is_new] = places_.emplace(name, std::make_unique<Place>());
        try {
            waited = lines_.enter(name, *at->second) || waited;
        } catch (...) {
            lines_.leave(name, *at->second);
            places_.erase(at);
            throw;
        }
    }
    return waited;
}

void Lines::Places::leave() noexcept {
    for (const auto& [name, place] : places_) lines_.leave(name, *place);
    places_.clear();
}

bool Lines::enter(const std::string& name, Place& place) {
    {
        Directory::accessor found;
        lines_->by_name.insert(found, name);
        Directory::Line& line = found->second;
        try {
            if (!line.empty()) place.wake = std::stop_source{};
            line.push_back(&place);
        } catch (...) {
            if (line.empty()) lines_->by_name.erase(found);
            throw;
        }
        standing_.fetch_add(1, std::memory_order_relaxed);
        if (line.size() == 1) {
            place.goes = true;
            return false;
        }
    }
    const Place* before = nullptr;
    std::optional<SteadyTime> next_since;
    while (!place.goes.load(std::memory_order_acquire)) {
        runtime_.clock.get().sleep_for(patience_, place.wake.get_token());
        const Place* first = nullptr;
        if (place.goes.load(std::memory_order_acquire) || !is_next(name, place, first)) continue;
        const SteadyTime now = runtime_.clock.get().steady_now();
        if (std::exchange(before, first) != first) next_since = now;
        if (next_since && now - *next_since >= patience_) place.goes = true;
    }
    return true;
}

bool Lines::is_next(const std::string& name, const Place& place, const Place*& first) {
    Directory::accessor found;
    if (!lines_->by_name.find(found, name)) return false;
    const Directory::Line& line = found->second;
    first = line.front();
    const auto waits = std::ranges::find_if(line, [](const Place* one) { return !one->goes; });
    return waits != line.end() && *waits == &place;
}

void Lines::leave(const std::string& name, Place& place) noexcept {
    std::stop_source wake{std::nostopstate};
    {
        Directory::accessor found;
        if (!lines_->by_name.find(found, name)) return;
        Directory::Line& line = found->second;
        if (std::erase(line, &place) == 0) return;
        standing_.fetch_sub(1, std::memory_order_relaxed);
        if (line.empty()) {
            lines_->by_name.erase(found);
        } else if (!line.front()->goes.exchange(true, std::memory_order_acq_rel)) {
            wake = line.front()->wake;
        }
    }
    wake.request_stop();
}

}  // namespace varve::detail
