#pragma once

#include "commands/climb.h"
#include "commands/command.h"
#include "commands/command_id.h"
#include "commands/command_metrics.h"
#include "commands/command_span.h"
#include "commands/followers.h"
#include "commands/lines.h"
#include "commands/workspace.h"

#include <varve/commands/options.h>
#include <varve/core/retry.h>
#include <varve/locks/locks.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace varve::detail {

/// Brings commands to their ends: attempt after attempt, by the policy. Several that touch the same one aggregate only
/// may go together: they are decided one after the other and committed as one.
///
/// Threads: all methods may be called from any thread.
class CommandRunner {
  public:
    CommandRunner(aggregates::Repository& repository, transactions::Coordinator& coordinator, RowTables& row_tables,
                  const InlineProjections& projections, Followers& followers, Locks& turns, CommandMetrics& metrics,
                  std::shared_ptr<telemetry::Tracer> tracer, RetryPolicy retry, Escalation escalation)
        : world_{repository, coordinator, row_tables, projections},
          followers_(followers),
          turns_(turns),
          metrics_(metrics),
          tracer_(std::move(tracer)),
          retry_(retry),
          escalation_(escalation),
          lines_(coordinator.runtime(), std::min<Duration>(escalation.queue_time_max, line_time_max)) {}

    /// Ends the first n of `commands`, n ≥ 1, and returns n. Each keeps its own outcome: a rejection rejects only
    /// itself, and one that throws fails only itself. Throws nothing.
    std::size_t run(Commands commands);

    /// InvalidError for options that can never work, and for a call from inside one of this runner's commands.
    void check(const char* call, const CommandOptions& options) const;

    CommandMetrics& metrics() const { return metrics_; }
    /// Of a command that begins now.
    std::optional<telemetry::OpenSpan> begin_span(const CommandOptions& options, std::string_view verb,
                                                  std::string_view aggregate = {}) const {
        return detail::begin_span(tracer_.get(), world_.coordinator.runtime(), options, verb, aggregate);
    }

  private:
    /// For how long one who goes keeps others back in the lines of this process: it may have got stuck.
    static constexpr Duration line_time_max = std::chrono::milliseconds{500};

    /// What a command has come to in one attempt, true if that commits.
    struct Fate {
        std::optional<Rejection> rejection = {};
        std::exception_ptr failure = {};
        std::optional<Outcome> ended_before = {};  ///< its id tells

        bool accepted() const { return !rejection && !failure && !ended_before; }
    };
    struct Attempt {
        std::string id;
        unsigned number;
        Time since;
        SteadyTime until;  ///< no wait goes on after it
        SteadyTime began;
        Commands& commands;  ///< those that it has come down to
        std::optional<transactions::Reservation> reservation = {};
        std::vector<IdSlot> ids = {};  ///< of all commands; empty in the first attempt, which takes them to be free
        std::vector<Fate> fates = {};  ///< of those that were decided
        SteadyTime ended = {};         ///< if it got as far as to commit, or to lose
        bool rests_on_memory = false;  ///< the store was not asked for all that it relied on

        bool is_first() const { return number == 1; }
        /// Alone, and nothing comes of it; since it threw.
        bool was_in_vain() const { return commands.size() == 1 && !fates.front().accepted(); }
        bool has_failed() const { return was_in_vain() && fates.front().failure; }
    };

    // A command's path, from top to bottom.

    /// As `run`. 0: together they can never work, which may be the fault of one of them.
    std::size_t run_together(Commands commands);
    /// What it lost by, if it did: the next one may win.
    std::optional<transactions::Conflict> attempt(Attempt& attempt, Climb& climb);
    /// Reserves if it is time to; reads what its commands' ids tell.
    void prepare(Attempt& attempt, Climb& climb) const;
    /// For what will be acknowledged once more: who wrote it may have died before it could.
    void announce(const std::vector<IdSlot>& ids) const;
    Fate decide(Workspace& work, const Command& command) const;
    /// Runs the commands' bodies, each on what those before it have decided. False: not all of them could be decided
    /// together, and `work` may have traces of the next one; once more, with those that could.
    bool decide(Workspace& work, Attempt& attempt) const;
    /// False: it had to wait for others, who may have changed what was decided on.
    bool is_its_turn(const Workspace& work, const Attempt& attempt, Climb& climb) const;
    std::optional<transactions::Conflict> commit(const Workspace& work, Attempt& attempt, Climb& climb) const;

    transactions::Plan plan(const Workspace& work, const Attempt& attempt) const;
    /// Of the accepted ones: what is known before the commit, with room for what is not.
    static std::vector<Receipt> receipts_before(const Workspace& work, const Attempt& attempt,
                                                const transactions::Plan& plan);
    std::variant<transactions::Conflict, transactions::Commit> commit(const transactions::Plan& plan,
                                                                      const Workspace& work, Attempt& attempt) const;
    /// Gives each command its outcome. Takes no memory.
    static void tell(Attempt& attempt, const transactions::Commit& commit, std::vector<Receipt> receipts, Rung rung);
    /// Where the commit is in doubt: what wrote nothing is certain not to have happened.
    static void tell_who_wrote_nothing(Attempt& attempt, const InDoubtError& error);
    static void fail(Commands commands, const std::exception_ptr& failure);
    static void count(Commands ended, Duration took);
    [[noreturn]] void throw_conflict(transactions::Conflict conflict, const Backoff& backoff) const;

    const Workspace::World world_;
    Followers& followers_;  // of what is committed
    Locks& turns_;
    CommandMetrics& metrics_;
    const std::shared_ptr<telemetry::Tracer> tracer_;
    const RetryPolicy retry_;
    const Escalation escalation_;
    Lines lines_;
};

}  // namespace varve::detail
