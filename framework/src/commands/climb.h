#pragma once

#include "commands/lines.h"
#include "commands/workspace.h"
#include "transactions/reservation.h"

#include <varve/commands/options.h>
#include <varve/commands/outcome.h>
#include <varve/core/clock.h>
#include <varve/locks/locks.h>

#include <map>
#include <optional>
#include <string>

namespace varve::detail {

/// How far a command has climbed that keeps losing: it tries again, stands in lines, queues for its turn, reserves. And
/// what it has learned on its way.
///
/// Threads: belongs to one run of a command. Gives up its places and its turn when it is destroyed.
class Climb {
  public:
    Climb(const Escalation& escalation, Lines& lines, Locks& turns, Clock& clock)
        : escalation_(escalation), turns_(turns), clock_(clock), began_(clock.steady_now()), places_(lines) {}

    Rung rung() const { return rung_; }
    void to(Rung at_least) { rung_ = std::max(rung_, at_least); }

    /// Before an attempt, the `number`-th: queues if it is time to. Whether it shall reserve.
    bool escalate(unsigned number, SteadyTime until);
    /// Takes places in the lines for what has been decided, and waits there. True if others were before it, who may
    /// have changed what that rests on. `all`: also for what is only read.
    bool wait_in_line(const Workspace& work, bool all, SteadyTime until);

    void note(const Workspace& work);
    void note(const transactions::BlockedError& error) { touched_.first = error.details(); }
    /// By the attempts so far, as they saw it last; and the aggregates' types, by stream.
    const transactions::Reservation::Wanted& touched() const { return touched_; }
    const std::map<std::string, const AggregateType*>& aggregates() const { return aggregates_; }

  private:
    void queue(SteadyTime until);

    const Escalation& escalation_;
    Locks& turns_;
    Clock& clock_;
    const SteadyTime began_;
    Rung rung_ = Rung::at_once;
    transactions::Reservation::Wanted touched_;
    std::map<std::string, const AggregateType*> aggregates_;
    bool queued_ = false;
    std::optional<Lock> turn_;  // once it has queued
    Lines::Places places_;
};

}  // namespace varve::detail
