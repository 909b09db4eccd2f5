#pragma once

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
          escalation_(escalation) {}

    /// Ends the first n of `commands`, n ≥ 1, and returns n. Each keeps its own outcome: a rejection rejects only
    /// itself, and one that throws fails only itself. Throws nothing.
    std::size_t run(std::span<Command* const> commands);

    /// InvalidError for options that can never work.
    static void check(const CommandOptions& options);

  private:
    /// What a command has come to in one attempt, true if that commits.
    struct Fate {
        std::optional<Rejection> rejection = {};
        std::exception_ptr failure = {};
        std::optional<Receipt> executed_before = {};

        bool accepted() const { return !rejection && !failure && !executed_before; }
    };
    /// The slot that says whether a command of an id was executed.
    struct IdSlot {
        transactions::Epoch epoch = 0;  ///< at which it is free
        std::optional<Receipt> receipt = {};
    };
    /// How far one run has climbed.
    struct Climb {
        Rung rung = Rung::at_once;
        transactions::Reservation::Wanted touched = {};  ///< by the attempts so far, as they saw it last
        bool queued = false;
        std::vector<Lock> turns = {};  ///< of these streams, once it has queued for them

        void to(Rung at_least) { rung = std::max(rung, at_least); }
        void note(const Transaction& tx);
        /// What the next attempt is going to read, as far as the last one tells.
        std::vector<store::Key> worth_fetching(const std::optional<transactions::Reservation>& reservation) const;
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

    std::optional<transactions::Conflict> attempt(std::span<Command* const> commands, Attempt& attempt, Climb& climb);
    /// Before an attempt: what it takes by now. Whether it shall reserve.
    bool escalate(Climb& climb, const Attempt& attempt) const;
    /// How many could be decided. Fewer than `commands`: `tx` may have traces of the next one, if `redo` is set.
    struct Cut {
        std::size_t decided;
        bool redo;
    };
    Cut decide(Transaction& tx, std::span<Command* const> commands, Attempt& attempt) const;
    std::optional<transactions::Conflict> commit(const Transaction& tx, std::span<Command* const> commands,
                                                 Attempt& attempt, Climb& climb);
    std::vector<IdSlot> read_ids(std::span<Command* const> commands, const Attempt& attempt) const;

    const Transaction::World world_;
    Locks& turns_;
    const RetryPolicy retry_;
    const Escalation escalation_;
};

}  // namespace varve::detail
