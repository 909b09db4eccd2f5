#pragma once

#include <varve/aggregates/decision.h>
#include <varve/core/result.h>
#include <varve/events/event.h>
#include <varve/transactions/outcome.h>

#include <optional>
#include <string>
#include <vector>

namespace varve {

class Lock;

/// How far a command had to go to get through; each rung includes those before it. Stands in its receipt.
enum class Rung : std::uint8_t {
    at_once,   ///< the first attempt committed, and nobody was in its way
    retried,   ///< it was refused, since others had written first, and decided again on what they wrote
    waited,    ///< it met another transaction, which was still running, and waited
    queued,    ///< it queued for the lock of the first of its aggregates: who keeps losing goes in order, one at a time
    reserved,  ///< it reserved its aggregates and rows by a slot of its own: whoever writes there waits for it
};
inline constexpr std::size_t rungs = 5;
const char* to_string(Rung rung) noexcept;

/// What a command has done.
struct Receipt {
    struct Written {
        std::string stream;
        Version version;
        bool operator==(const Written&) const = default;
    };
    std::string transaction;       ///< the attempt's id; empty if nothing was written
    std::vector<Written> written;  ///< the streams that got events, by name, and the slots these are in
    /// The slot that has the command's effects. Nullopt if there are none, and of a repeated command if it had events.
    std::optional<Written> effects_slot = {};
    transactions::Path path = transactions::Path::nothing;
    unsigned attempts = 1;
    Rung rung = Rung::at_once;  ///< what it took
    bool repeated = false;      ///< a command of this id had been executed before: this is what it did then
};

/// A rejection is a value; it changed nothing.
using Outcome = Result<Receipt, Rejection>;

/// What a command may carry besides its own fields.
struct CommandOptions {
    /// Executed at most once under this id, for ever and by all processes: a repeat does nothing and returns the first
    /// receipt. Costs one slot more. A rejected command may be tried again under its id. 1 to 200 bytes.
    ///
    /// The id stands for one thing: rejected with code "command_id_reused", and nothing written, if it was used for a
    /// command of another type, on another aggregate, or with other fields. Of `transact` the framework knows only what
    /// `contents` says.
    std::string command_id = {};
    /// With a command id: what it stands for, as text, for instance the request as it came in. In place of the
    /// command's fields.
    std::string contents = {};
    /// For `execute` and `submit`: rejected with code "wrong_version" unless the aggregate is at this version. Commands
    /// that were written together share one: who was told a version has not necessarily seen all of it.
    std::optional<Version> expected_version = {};
    /// Commits only while this lock is in the same hands (Transaction::fenced_by). Must be there until the
    /// call returns, after `submit` until the future is ready.
    const Lock* fenced_by = nullptr;
    std::string correlation = {};  ///< stored with the events; the command's id if empty
    std::string causation = {};
    std::map<std::string, std::string> headers = {};
};

}  // namespace varve
