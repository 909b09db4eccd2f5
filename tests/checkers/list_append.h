#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Judges a recorded history of transactions that append unique values to lists and read whole lists: was it
/// serializable, and in the order of real time? The method of the Elle paper: a read list tells the order of the
/// appends before it, so the dependencies between transactions follow from the history alone, and a cycle of them is an
/// anomaly.
///
/// Sound: what is reported did happen, whatever the in-doubt transactions did. Knows no layer of varve.
///
///     History history{"transfers", {{"t1", 0, Status::ok, 1, 2, {Append{"x", 7}}},
///                                   {"t2", 1, Status::ok, 3, 4, {Read{"x", {}}}}}};
///     for (const Finding& f : check(history)) std::cerr << name(f.anomaly) << "\n";   // G-single-realtime
///
/// Threads: free functions without state; call them from anywhere.
namespace varve::checkers {

struct Append {
    std::string key;
    std::int64_t value = 0;  ///< appended to this key once in the whole history
};

struct Read {
    std::string key;
    std::optional<std::vector<std::int64_t>> values;  ///< none: the answer never came
};

using Operation = std::variant<Append, Read>;

enum class Status {
    ok,    ///< acknowledged: committed
    fail,  ///< told aborted: must never be seen
    info,  ///< in doubt: committed if, and only if, somebody saw it
};

struct Transaction {
    std::string id;
    std::int64_t process = 0;
    Status status = Status::ok;
    std::optional<std::int64_t> invoke;    ///< none: unknown, ordered by its data only
    std::optional<std::int64_t> complete;  ///< none: never (always so when in doubt); the unit is the recorder's
    std::vector<Operation> operations;
};

struct History {
    std::string name;
    std::vector<Transaction> transactions;
    std::vector<std::string>
        value_names;  ///< when not empty, values are indexes into it (a history with string values)
};

/// From the worst to the mildest; the first four need no cycle, and no level allows them.
enum class Anomaly {
    garbage_read,        ///< a value that nobody appended
    duplicate_appends,   ///< a value appended by two, or seen twice in one list
    incompatible_order,  ///< two reads of a key of which neither is a prefix of the other
    internal,            ///< a transaction does not see its own appends, or sees those it has yet to make
    g1a,                 ///< aborted read
    g1b,                 ///< intermediate read: ends at an append that is not the last of its transaction
    g0,                  ///< cycle of ww
    g1c,                 ///< cycle of ww and wr
    g_single,            ///< cycle with exactly one rw: read skew, lost update
    g_nonadjacent,       ///< cycle with several rw, no two in a row
    g2_item,             ///< cycle with two rw in a row: write skew
    g0_realtime,         ///< the same with at least one 'completed before the other began' in the cycle
    g1c_realtime,
    g_single_realtime,  ///< also a stale read: an acknowledged append is not seen by who began later
    g_nonadjacent_realtime,
    g2_item_realtime,
};

/// "G-single-realtime" and the like.
std::string_view name(Anomaly anomaly);

struct Finding {
    Anomaly anomaly{};
    std::vector<std::string> explanation;  ///< one line per edge of the cycle, or one sentence
    std::vector<std::string> cycle;        ///< the transactions' ids in order; empty without a cycle
};

/// All anomalies that occur, at most one example of each, in the order of the enumeration. Empty: strictly serializable
/// as far as the history can tell. A -realtime class is left out where the same transactions already show one as bad
/// without clocks. 100,000 transactions take about a second.
std::vector<Finding> check(const History& history);

enum class Level { serializable, snapshot, committed };

/// What a level of isolation lets happen. `serializable` is strict: nothing, -realtime neither. `snapshot`: write skew,
/// with or without the clock's help. `committed`: all cycles with an rw in them; a stale single read is one of those by
/// name (G-single-realtime), so that promise of the level needs a check of its own.
std::set<Anomaly> anomalies_allowed(Level level);

}  // namespace varve::checkers
