#pragma once

#include <varve/core/retry.h>
#include <varve/core/runtime.h>
#include <varve/locks/options.h>
#include <varve/transactions/options.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve {

/// Programs with an older struct of a read model, which would write rows without the entries of its new indexes.
enum class OldPrograms {
    may_run,     ///< they learn of the indexes within the retention, and are refused then
    have_ended,  ///< and their last request has reached the store
};

class Executor;

namespace telemetry {
class Tracer;
}

/// What a command does when it keeps losing to others. Optimistic attempts cost nothing while aggregates are cool. Each
/// rung of this ladder costs more than the one before, and helps against more contention. Between two attempts a
/// command sleeps by its RetryPolicy, which also says when to give up. Whoever is still running is waited for.
struct Escalation {
    /// After this many refused attempts a command queues for a lock (locks/locks.h): that of the first aggregate that
    /// it has touched, by name, or of the first row if it has touched no aggregate. The lock puts those who have come
    /// this far in order; others still write as they please. Costs 3 writes and 2 queries, and 2 writes to release.
    unsigned queue_after = 4;
    /// How long to queue. Who does not have the lock by then reserves at once. 0: no lock is taken.
    Duration queue_time_max = std::chrono::seconds{15};
    /// After this many refused attempts a command reserves the aggregates and rows that it has touched, and only then
    /// reads them (docs/protocol.md). Whoever writes there waits for it. Costs 2 writes for each, and a slot that
    /// stays.
    unsigned reserve_after = 8;
    /// A command that is refused this long after it began does both. Time in lines does not count. For stores that are
    /// far away, where attempts are few.
    Duration reserve_after_time = std::chrono::seconds{2};
};

/// Commands on one aggregate in one process queue in its lane. What waits there is decided together, one command after
/// the other on the state in memory, and is appended as ONE slot.
struct LaneOptions {
    std::size_t queue_max = 10'000;  ///< commands in one lane, including those being decided; at least 1
    /// What happens to one more: its caller waits for room, or gets an OverloadedError.
    enum class WhenFull { wait, refuse };
    WhenFull when_full = WhenFull::wait;
    std::size_t batch_max = 1000;  ///< commands in one slot, at most; 1: each gets a slot of its own
    /// Threads that execute what was submitted; the first submit starts them. As many lanes can wait for the store at
    /// the same time.
    std::size_t threads = 16;
};

/// Errors: the constructor refuses what cannot work, with a ConfigError that names the option.
struct ApplicationOptions {
    RetryPolicy retry = {};      ///< of a command that loses to others
    Escalation escalation = {};  ///< what else it does when it keeps losing
    transactions::Options transactions = {};
    /// Whether this application finishes what dead processes have left (docs/protocol.md), and how often it looks.
    /// A store without an order of changes has to be scanned for that; `scan` says how fast.
    bool sweep = true;
    Duration sweep_interval = std::chrono::milliseconds{500};  ///< more than 0
    transactions::ScanOptions scan = {};
    /// Whether events can be followed in a store that keeps no order of changes (docs/following.md). Each command costs
    /// one write more there, and those applications that sweep put its events in order. It is decided once for a store:
    /// nullopt: as the store says, a new one: yes. True: also where it was no. False: ConfigError where it is yes. In
    /// stores that keep an order it means nothing.
    std::optional<bool> feed = {};
    /// Over how many partitions such a store spreads what commands announce, 1 to 64: where one takes too few writes a
    /// second (docs/feed.md). Kept with the store; nullopt: as it says, a new one: 1. A larger number than the store's
    /// raises it for all, who may go on meanwhile; a smaller one: ConfigError. Like `feed`, it means nothing elsewhere.
    std::optional<unsigned> feed_shards = {};
    std::size_t background_threads = 2;  ///< they finalise after the acknowledgement
    /// How much memory the last states of aggregates may take. With the state in memory a command need not read before
    /// it writes (docs/hot-aggregates.md). 0: no state is kept; each command and each load reads the whole stream.
    std::size_t cache_bytes_max = 64 << 20;
    LaneOptions lanes = {};
    LocksOptions locks = {};
    Runtime runtime = {};
    /// Takes the spans of commands, and of the requests to the store that they make (telemetry/trace.h). nullptr: none
    /// are made, at no cost.
    std::shared_ptr<telemetry::Tracer> tracer = nullptr;
    Executor* executor = nullptr;  ///< instead of threads of its own; must outlive the application
};

/// How events are followed (Application::follow and subscribe).
///
/// Errors: follow and subscribe refuse what cannot work, with a ConfigError that names the option.
struct FollowOptions {
    /// Slots that are taken together, at most, when many are waiting; at least 1. A projection takes fewer where they
    /// change more rows than the store writes at a time.
    std::size_t batch_max = 2000;
    /// How often a follower that has caught up asks the store for what others have written; more than 0. What commands
    /// of its own application commit it sees at once.
    Duration poll_interval = std::chrono::milliseconds{50};
    /// What happens at an event that can never be taken: the follower stops there; or it sets the event's stream aside,
    /// and takes all the others (parked_stream.h).
    enum class OnPoison : std::uint8_t { stop, park };
    OnPoison on_poison = OnPoison::stop;
    /// Streams that are set aside, at most; at least 1. With one more it stops: it is not the events that are broken.
    std::size_t parked_max = 1000;
    /// Into how many parts its streams are split, so that as many threads, and processes, take events at the same time:
    /// each takes those of its streams, in their order; 1 to 64. It is kept with the first start: another number later
    /// makes a projection's rows anew, and is refused for a subscription (docs/following.md).
    std::size_t partitions = 1;
    /// What a rebuild (Application::rebuild) takes in a second, at most, so that it leaves the store to others: events,
    /// or slots where it has no use for most of them. 0: as many as it can.
    std::size_t rebuild_events_per_second_max = 0;
    /// How long rows stay after a rebuild has replaced them, for those who are reading a list of them; not negative.
    Duration replaced_rows_kept_for = std::chrono::minutes{10};
};

/// Where a subscription begins that has not been there before.
enum class StartAt : std::uint8_t { beginning, end };

struct SubscribeOptions {
    std::vector<std::string> aggregates = {};  ///< those with these names; empty: all
    std::vector<std::string> types = {};       ///< events of these types, as stored; empty: all
    StartAt start_at = StartAt::beginning;
    std::uint64_t after = 0;  ///< a RecordedEvent::position: from the beginning, but only what comes after this
    /// For live tails: it keeps no place, and each process that subscribes gets all events, each time as if it had not
    /// been there before.
    bool ephemeral = false;
    FollowOptions follow = {};
};

}  // namespace varve
