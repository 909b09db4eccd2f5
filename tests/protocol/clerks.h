#pragma once

#include "protocol/domain.h"
#include "protocol/ledger.h"
#include "protocol/record.h"

#include <varve/processes/process.h>
#include <varve/processes/schedule.h>
#include <varve/testing/seeded_random.h>
#include <varve/varve.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The processes of the simulated cluster, in the sense of process managers: what they do about the money that moves,
/// the timers that they set, the commands that clients have scheduled, and how all that is judged.
namespace varve::protocol {

/// What has been counted, each number once.
struct Counted {
    std::int64_t number = 0;
};
struct Count {
    std::int64_t number = 0;
};
struct Tally {
    static constexpr std::string_view name = "tally";
    using Event = std::variant<Counted>;
    std::vector<std::int64_t> numbers = {};

    void apply(const Counted& e) { numbers.push_back(e.number); }
    Decision<Event> decide(const Count& c) const { return Counted{c.number}; }
};
/// What processes count, and what clients schedule.
inline constexpr const char* tallies[] = {"a", "b"};
inline constexpr const char* scheduled_tally = "scheduled";

/// An effect.
struct Chime {
    std::int64_t operation = 0;
};
/// A timer.
struct Ring {
    std::int64_t operation = 0;
    Time due;
};

struct Noted {
    std::int64_t operation = 0;
    std::string timer;
};
struct Rang {
    std::int64_t operation = 0;
    Time due;
    Time at;
};
struct Silenced {
    std::int64_t operation = 0;
    bool in_time = false;
};

/// Counts each deposit, and counts it once more when its timer rings, unless the withdrawal of the same operation comes
/// before and silences it.
struct Clerk {
    static constexpr std::string_view name = "clerk";
    using Event = std::variant<Noted, Rang, Silenced>;
    using ListensTo = EventsOf<Account>;
    using Timers = std::variant<Ring>;

    static inline bool is_broken = false;  ///< it cannot take some operations, nor some timers

    std::map<std::int64_t, std::string> waiting = {};  ///< timers, by operation

    void apply(const Noted& e) { waiting[e.operation] = e.timer; }
    void apply(const Rang& e) { waiting.erase(e.operation); }
    void apply(const Silenced& e) { waiting.erase(e.operation); }

    static std::optional<std::string> on(const Deposited& e, const EventContext&) { return desk(e.operation); }
    static std::optional<std::string> on(const Withdrawn& e, const EventContext&) { return desk(e.operation); }

    void react(const Deposited& e, Reaction& r) const {
        fail_at(e.operation, 5);
        const Time due = r.now() + std::chrono::milliseconds{700} * (e.operation % 5 - 1);  // some are in the past
        r.execute<Tally>(tallies[e.operation % 2], Count{e.operation});
        r.effect(Chime{e.operation});
        r.record(Noted{e.operation, r.at(due, Ring{e.operation, due})});
    }
    void react(const Withdrawn& e, Reaction& r) const {
        const auto timer = waiting.find(e.operation);
        if (timer != waiting.end()) r.record(Silenced{e.operation, r.cancel(timer->second)});
    }
    void react(const Ring& e, Reaction& r) const {
        fail_at(e.operation, 7);
        r.execute<Tally>(tallies[e.operation % 2], Count{-e.operation});
        r.record(Rang{e.operation, e.due, r.now()});
    }

  private:
    static std::optional<std::string> desk(std::int64_t operation) {
        if (operation == 0) return std::nullopt;  // what accounts begin with
        return std::to_string(operation % 3);
    }
    static void fail_at(std::int64_t operation, std::int64_t remainder) {
        if (is_broken && operation % 13 == remainder) throw std::runtime_error("the clerk has lost his glasses");
    }
};

/// Whether an aggregate is one of those above, which no other follower is judged by.
bool is_clerical(std::string_view aggregate);

/// At rest, when every reaction has been made and every timer has fired: for each deposit one note, one count and one
/// chime; and either it rang, once, not before its time, and was counted once more, or it was silenced in time. What
/// was scheduled was done once, if that has committed and nobody cancelled it. Nothing waits any more.
std::vector<std::string> judge_clerks(Application& application, Ledger& ledger, const Record& record);

/// Lets the place of a process be forgotten, as if its row had been lost.
void lose_place(Application& application, testing::SeededRandom& random, std::size_t partitions);

}  // namespace varve::protocol
