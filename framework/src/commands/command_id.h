#pragma once

#include "commands/command.h"
#include "transactions/settled_reader.h"
#include "transactions/slot.h"

#include <varve/commands/outcome.h>
#include <varve/store/item.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A command that was executed under an id leaves slot 1 of the stream "$cmd-<id>", written in its transaction:
//
//     payload := receipt [fingerprint]       (JSON text: [{"stream":…,"version":…}, …]; of what the id stands for)

namespace varve::detail {

/// InvalidError for one that is too long.
void check_command_id(const std::string& command_id);

/// The streams of these slots begin so.
inline constexpr std::string_view id_prefix = "$cmd-";
store::Key id_slot_key(const std::string& command_id);
/// What stands there once a command with this fingerprint has written `written`.
store::Item id_slot_payload(const std::string& fingerprint, const std::vector<Receipt::Written>& written);

/// The slots that a committed `$cmd` slot names. CorruptionError for a receipt that cannot be read.
std::vector<Receipt::Written> written_by_command(const store::Key& slot, const transactions::Committed& content);

/// The slot that says whether a command of an id was executed. Errors of who reads it: CorruptionError for a receipt
/// that cannot be read, those of SettledReader.
struct IdSlot {
    transactions::Epoch epoch = 0;  ///< at which it is free
    /// How the command ended, as the first time; a Rejection if the id stood for something else then.
    std::optional<Outcome> ended_before = {};
};

/// That of the command with this id and fingerprint.
IdSlot read_id_slot(const std::string& command_id, const std::string& fingerprint, transactions::SettledReader& reader);
/// Those of all `commands`, in their order; of one without an id it is free.
std::vector<IdSlot> read_id_slots(Commands commands, transactions::SettledReader& reader);

}  // namespace varve::detail
