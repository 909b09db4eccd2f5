#include "commands/climb.h"

#include "transactions/slot.h"

#include <varve/core/error.h>

#include <algorithm>
#include <set>

namespace varve::detail {

using namespace transactions;

bool Climb::escalate(unsigned number, SteadyTime until) {
    // In line it loses against nobody.
    const Duration spent = clock_.steady_now() - began_ - places_.waited();
    const bool is_late = number > 1 && spent >= escalation_.reserve_after_time;
    if (number > escalation_.queue_after || is_late) queue(until);
    const bool missed_its_turn = queued_ && !turn_;
    if (number <= escalation_.reserve_after && !missed_its_turn && !is_late) return false;
    to(Rung::reserved);
    return true;
}

void Climb::queue(SteadyTime until) {
    constexpr std::size_t name_bytes_max = 1024;
    const bool knows_what = !touched_.streams.empty() || !touched_.rows.empty();
    if (queued_ || !knows_what || escalation_.queue_time_max == Duration::zero()) return;
    queued_ = true;
    to(Rung::queued);
    const std::string name = "$turn-" + (touched_.streams.empty() ? store::to_string(touched_.rows.begin()->first)
                                                                  : touched_.streams.begin()->first);
    if (name.size() > name_bytes_max) return;
    const Duration left = until - clock_.steady_now();
    try {
        turn_ = turns_.try_acquire(name, {.wait = std::clamp(left, Duration::zero(), escalation_.queue_time_max)});
    } catch (const Error& error) {
        // It only gives order; what the store does not answer here, it will be asked again.
        if (!error.retryable()) throw;
    }
    touched_.is_long_ago = true;
}

bool Climb::wait_in_line(const Workspace& work, bool all, SteadyTime until) {
    if (escalation_.queue_time_max == Duration::zero()) return false;
    try {
        return places_.enter(work.lines(all), until);
    } catch (const BlockedError& error) {
        const auto found = work.aggregates().find(error.details().item);
        if (found == work.aggregates().end()) throw;
        throw BlockedError(error.what(), lost_at(slot_key(found->first, found->second.seen.head + 1)));
    }
}

void Climb::note(const Workspace& work) {
    for (const auto& [stream, one] : work.aggregates()) {
        touched_.streams.insert_or_assign(stream, Reservation::Wanted::Stream{one.seen.head, one.seen.next.epoch});
        aggregates_.insert_or_assign(stream, one.type);
    }
    for (const auto& [key, one] : work.rows()) touched_.rows.insert_or_assign(key, one.seen);
    touched_.is_long_ago = false;
}

}  // namespace varve::detail
