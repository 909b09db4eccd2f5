#pragma once

#include "commands/checkpoint.h"
#include "commands/consumer.h"
#include "protocol/ledger.h"
#include "protocol/record.h"

#include <varve/rows/indexes.h>
#include <varve/varve.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What the simulated cluster follows, and how it is judged.
namespace varve::protocol {

/// What events make of a row that depends on each of them and on their order. It may be made anew at any time.
struct Fold {
    static constexpr std::string_view table = "folds";
    static constexpr std::string_view kept_by = "folds";
    std::int64_t events = 0;
    std::int64_t version = 0;  ///< of the last one
    std::int64_t digest = 0;
    using Indexes = varve::Indexes<varve::Index<&Fold::version>>;

    bool operator==(const Fold&) const = default;
};
/// The row under this key is of all events in their one order; each other one is of the aggregate of this id.
inline constexpr std::string_view all_events = "all";

/// A row for each event, by its aggregate and its place there.
struct Sighting {
    static constexpr std::string_view table = "sightings";
    static constexpr bool sorted = true;
    std::int64_t times = 0;
    std::uint64_t position = 0;

    bool operator==(const Sighting&) const = default;
};

/// By what name events, and effects, are followed: two projections, two subscriptions, and a delivery.
enum class Followed {
    folds,       ///< accounts and lists
    sightings,   ///< all aggregates
    everything,  ///< a subscription to all aggregates
    deposits,    ///< a subscription that begins at the end
    effects,     ///< what commands announce, delivered
};
std::string name_of(Followed followed);

/// An event as a subscription was handed it.
struct Delivery {
    std::string stream;
    Version version = 0;
    std::size_t index = 0;
    std::uint64_t position = 0;
    std::string data = {};

    bool operator==(const Delivery&) const = default;
};
/// In the order in which they were handed over, by all processes together.
using Deliveries = std::map<Followed, std::vector<Delivery>>;

/// How a process follows.
struct Manner {
    FollowOptions options = {};
    bool is_broken = false;  ///< it throws at some events
    double is_busy = 0;      ///< the chance that an effect is not taken
};
detail::Consumer consumer(Followed followed, const Manner& manner, Deliveries& deliveries, const Runtime& runtime);

void use_following_tables(Application& application);

/// At rest, when each of `all` has come to the end: the events are those of the ledger in the order of their places,
/// which are those in the log if the store has one;
/// each projection has seen each of them exactly once, in order, each subscription at least once, and none before the
/// one that comes before it; effects were delivered likewise, but in the order of each stream alone.
std::vector<std::string> judge_following(Application& application, Ledger& ledger, const Deliveries& deliveries,
                                         const std::vector<Followed>& all, bool has_log);
/// Once sequencers have nothing to do, and before anybody has scanned: all that was acknowledged is in the log.
std::vector<std::string> judge_log(Ledger& ledger, const Record& record);

}  // namespace varve::protocol
