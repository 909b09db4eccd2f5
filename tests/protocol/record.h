#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <checkers/list_append.h>

namespace varve::protocol {

/// What a caller was told of a command's end.
enum class Told { committed, aborted, unknown };

/// What all callers of a simulated cluster were told, for those who judge afterwards.
struct Record {
    struct Command {
        std::size_t begun = 0;  ///< executions: one under a command id may have several, at the same time too
        std::size_t aborted = 0;
        std::string transaction = {};  ///< of a committed one
        bool committed = false;
        bool moves_money = false;       ///< it leaves two events, or none
        bool announces = false;         ///< it leaves one effect, or none
        std::size_t stamps = 0;         ///< so many registers it stamps, or none
        bool schedules = false;         ///< it schedules a command, or none
        bool is_cancelled = false;      ///< somebody was told that he has cancelled that in time
        std::size_t cancels_begun = 0;  ///< and how many may have, who were told nothing
        std::string why = {};           ///< the message of what was not committed

        Told told() const { return committed ? Told::committed : begun == aborted ? Told::aborted : Told::unknown; }
    };
    std::map<std::int64_t, Command> commands = {};  ///< by operation
    checkers::History lists = {};                   ///< strictly serializable
    checkers::History lists_read = {};              ///< the reads outside transactions, each of one moment
    std::vector<std::string> violations = {};       ///< what was seen while it ran

    /// What everybody wants for a while, so that many do it at the same time.
    enum class Theme { nothing, crossing, hot_lists, hot_rows, money, section, folds };
    Theme theme = Theme::nothing;
    std::uint64_t commands_left = 0;  ///< of this theme

    /// A transfer under a command id, which anybody may execute again.
    struct Transfer {
        std::int64_t operation;
        std::string from;
        std::string to;
        std::int64_t cents;
    };
    std::vector<Transfer> repeatable = {};

    /// A command that somebody has scheduled, and anybody may cancel.
    struct Scheduled {
        std::int64_t operation;
        std::string timer;
    };
    std::vector<Scheduled> scheduled = {};
    std::uint64_t repeated = 0;  ///< executions that were told the outcome of an earlier one

    /// Which commands took which way, and how they ended.
    std::map<std::string, std::uint64_t> paths = {};
    std::uint64_t committed = 0;
    std::uint64_t aborted = 0;
    std::uint64_t in_doubt = 0;
    std::uint64_t stopped = 0;
    std::uint64_t sections = 0;    ///< times the lock was entered
    std::uint64_t fenced_off = 0;  ///< commands refused since their lock was in other hands
    std::uint64_t followed = 0;    ///< events that followers have taken, of each name
    std::uint64_t poisoned = 0;    ///< times that a broken one stopped
    std::uint64_t reactions = 0;   ///< of processes, to events and timers, and commands that were scheduled
    std::uint64_t checked = 0;     ///< times that a check went through the store while others wrote
    std::uint64_t rebuilt = 0;     ///< times that rows were made anew, or were begun to be
    /// How many events were in each of the rows that followers keep, as somebody has read them.
    std::map<std::string, std::int64_t> folds_seen = {};
};

}  // namespace varve::protocol
