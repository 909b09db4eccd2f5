#pragma once

#include "lines.h"

#include <varve/commands/transaction.h>
#include <varve/locks/locks.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace varve::detail {

/// One command on its way, and how it ended.
struct Command {
    const std::function<void(Transaction&)>& body;
    const CommandOptions& options;
    Time began;
    std::string fingerprint = {};         ///< of what its id stands for
    bool in_lane = false;                 ///< of those on its aggregate one goes at a time as it is
    std::optional<Outcome> outcome = {};  ///< one of the two, as soon as it has ended
    std::exception_ptr failure = {};
};

/// Brings commands to their ends: attempt after attempt, by the policy. Several that touch the same one aggregate only
/// may go together: they are decided one after the other and committed as one.
///
/// Threads: all methods may be called from any thread.
class CommandRunner {
  public:
    CommandRunner(aggregates::Repository& repository, transactions::Coordinator& coordinator, RowTables& row_tables,
                  const InlineProjections& projections, Locks& turns, RetryPolicy retry, Escalation escalation)
        : world_{repository, coordinator, row_tables, projections},
          turns_(turns),
          retry_(retry),
          escalation_(escalation),
          lines_(coordinator.runtime(), escalation.queue_time_max) {}

    /// Ends the first n of `commands`, n ≥ 1, and returns n. Each keeps its own outcome: a rejection rejects only
    /// itself, and one that throws fails only itself. Throws nothing.
    std::size_t run(std::span<Command* const> commands);

    /// InvalidError for options that can never work, and for a call from inside one of this runner's commands.
    void check(const char* call, const CommandOptions& options) const;

  private:
    /// What a command has come to in one attempt, true if that commits.
    struct Fate {
        std::optional<Rejection> rejection = {};
        std::exception_ptr failure = {};
        std::optional<Outcome> ended_before = {};  ///< its id tells

        bool accepted() const { return !rejection && !failure && !ended_before; }
    };
    /// The slot that says whether a command of an id was executed.
    struct IdSlot {
        transactions::Epoch epoch = 0;  ///< at which it is free
        std::optional<Outcome> ended_before = {};
    };
    /// How far one run has climbed.
    struct Climb {
        explicit Climb(Lines& lines) : places(lines) {}

        Rung rung = Rung::at_once;
        std::set<std::string> streams = {};  ///< that the attempts so far have touched
        bool queued = false;
        std::vector<Lock> turns = {};  ///< of these streams, once it has queued for them
        Lines::Places places;

        void to(Rung at_least) { rung = std::max(rung, at_least); }
    };
    struct Attempt {
        std::string id;
        unsigned number;
        Time since;
        std::size_t together;  ///< how many of the commands it has come down to
        std::optional<transactions::Reservation> reservation = {};
        std::vector<IdSlot> ids = {};  ///< of all commands; empty in the first attempt, which takes them to be free
        std::vector<Fate> fates = {};  ///< of those that were decided
        bool rests_on_memory = false;  ///< the store was not asked for all that it relied on
    };

    [[noreturn]] void throw_conflict(transactions::Conflict conflict, const Backoff& backoff) const;
    std::optional<transactions::Conflict> attempt(std::span<Command* const> commands, Attempt& attempt, Climb& climb);
    /// Takes places in the lines for what has been decided, and waits there. True if others were before it, who may
    /// have changed what that rests on.
    bool wait_in_line(const Transaction& tx, std::span<Command* const> commands, const Attempt& attempt, Climb& climb);
    /// Before attempt `number`: what it takes by now. Whether it shall reserve.
    bool escalate(Climb& climb, unsigned number) const;
    /// How many could be decided. Fewer than `commands`: `tx` may have traces of the next one, if `redo` is set.
    struct Cut {
        std::size_t decided;
        bool redo;
    };
    Cut decide(Transaction& tx, std::span<Command* const> commands, Attempt& attempt) const;
    std::optional<transactions::Conflict> commit(const Transaction& tx, std::span<Command* const> commands,
                                                 Attempt& attempt, Climb& climb);
    /// Of the accepted ones: what is known before the commit, with room for what is not.
    static std::vector<Receipt> receipts_before(const Transaction& tx, std::span<Command* const> commands,
                                                const Attempt& attempt, const transactions::Plan& plan);
    std::vector<IdSlot> read_ids(std::span<Command* const> commands, const Attempt& attempt) const;

    const Transaction::World world_;
    Locks& turns_;
    const RetryPolicy retry_;
    const Escalation escalation_;
    Lines lines_;
};

}  // namespace varve::detail
