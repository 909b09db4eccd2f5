#pragma once

#include <varve/commands/application.h>

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace varve::operations {

/// How far a check has come.
struct CheckProgress {
    std::string_view looks_at;  ///< a table, or what is folded again; no longer than the call
    std::size_t items = 0;      ///< that were read so far, of all tables
    std::size_t findings = 0;   ///< so far
};

struct CheckOptions {
    /// Called in the checking thread, about once for each page: one that sleeps spares the store. What it throws ends
    /// the check.
    std::function<void(const CheckProgress&)> on_progress = {};
    /// Ends the check at the next page; its report is not complete then.
    std::stop_token stop = {};
    /// The check ends when it has so many.
    std::size_t findings_max = 1000;
    /// Whether projections that the application has are folded again, from all events (Application::verify).
    bool fold_projections = true;
    /// Of memory, for the rows of one projection.
    std::size_t fold_bytes_max = Application::verify_bytes_max;
};

/// Something that is broken.
struct Finding {
    std::string rule;  ///< its short name, which stays the same: "hole" (docs/checking.md)
    std::string item;  ///< "events/account-alice/7"
    std::string what;  ///< a sentence about it, for people
    auto operator<=>(const Finding&) const = default;
};

/// What a check has found, and how much it has seen.
struct CheckReport {
    std::vector<Finding> findings;         ///< by rule and item
    std::vector<std::string> not_checked;  ///< what could not be compared, and why: a sentence each
    bool is_complete = false;              ///< it was not stopped, nor were there too many, and `not_checked` is empty

    std::size_t slots = 0;    ///< of all streams, the framework's own too
    std::size_t events = 0;   ///< that are committed and can be read
    std::size_t streams = 0;  ///< of aggregates, that have a committed slot
    std::size_t rows = 0;     ///< of read models
    std::size_t index_entries = 0;
    std::size_t snapshots = 0;
    std::size_t locks = 0;
    std::size_t logged = 0;         ///< places in the log, where the store keeps no order of changes
    std::size_t bells = 0;          ///< that stand
    std::size_t folded_rows = 0;    ///< of projections, that were compared with what the events say
    std::size_t undecided = 0;      ///< claims whose transactions may still commit
    std::size_t to_be_settled = 0;  ///< claims whose transactions have ended: Application::settle clears them
    std::size_t not_in_order = 0;   ///< committed slots that are not in the log yet

    /// Whether everything was looked at and nothing is broken.
    bool holds() const { return is_complete && findings.empty(); }
};

/// Finds what is broken in a store: holes in streams, items that cannot be read, commits that are not whole, entries of
/// indexes without their rows, a log that is not what the slots say, and so on; docs/checking.md has all rules. For
/// those who run a store: after an outage, a restore from a backup, a change by hand.
///
///     varve::Application bank{varve::open("sqlite:bank.db")};
///     const CheckReport report = check(bank);
///     for (const Finding& one : report.findings) std::cout << one.rule << " " << one.item << ": " << one.what << "\n";
///
/// It repairs nothing, and may run beside everybody else: what changes while it looks is looked at again, and what is
/// on its way is no finding but counted. It writes no item; it makes the framework's tables where they are missing, as
/// every Application does. Folding projections may hold a row that others keep changing, for a moment. Whether an
/// owner died is not asked: a claim stays a claim until somebody settles it.
///
/// Types that the application knows are used: aggregates that it has loaded, or has inline projections for, read models
/// that it has used, projections that it has. Of others it looks at what can be told without their types.
///
/// Reads everything that is stored once, and some of it twice, a page at a time. Memory: a few pages, what
/// `fold_bytes_max` says, and where the store keeps no order of changes about 100 bytes for each stream in the log.
///
/// Threads: any; the application may be used meanwhile, but not from inside a handler or body. Errors: those of the
/// store. An item that cannot be read is a finding and no error.
[[nodiscard]] CheckReport check(Application& application, const CheckOptions& options = {});

}  // namespace varve::operations
