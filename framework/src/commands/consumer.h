#pragma once

#include "commands/build.h"
#include "feed/feed.h"

#include <varve/commands/options.h>
#include <varve/commands/outcome.h>
#include <varve/commands/projection.h>
#include <varve/commands/transaction.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

class Deliverer;
struct TimerRow;

/// What a follower does with events, or effects. One of `project`, `react`, `handle` and `deliverer` is there.
struct Consumer {
    std::string name;
    feed::Filter filter;
    StartAt start_at = StartAt::beginning;
    store::Position after = 0;
    bool ephemeral = false;  ///< it has neither a checkpoint nor a lock
    FollowOptions options;
    std::int64_t version = 1;
    /// Which build it keeps (build.h). Nullopt: no one else can have begun it in another way.
    std::optional<BuildOf> build = {};
    /// Asked before each batch: how long to wait with it. What was seen, and the events that were taken. Null: it need
    /// not.
    std::function<Duration(store::Position seen, std::int64_t events)> pace = {};
    /// In the transaction that moves the checkpoint.
    std::function<void(Transaction&, const RecordedEvent&)> project;
    /// The same, for what is done once for ever (Workspace::begin_once): one slot to a transaction.
    std::function<void(Transaction&, const std::string& consumer, const RecordedEvent&)> react = {};
    /// What a timer of its own does, in the transaction that takes it away (timers.h). Null: it sets none.
    std::function<void(Transaction&, const std::string& consumer, const std::string& id, const TimerRow&)> fire = {};
    bool hears = true;  ///< false: it has timers only
    /// What these are going to read, so that it takes one round trip. May be left out.
    std::function<void(Transaction&, std::span<const RecordedEvent>)> read_ahead = {};
    /// Before the checkpoint moves, and again if that fails.
    std::function<void(std::span<const RecordedEvent>)> handle;
    /// Before the checkpoint moves, as far as it comes; the filter is of effects.
    std::shared_ptr<Deliverer> deliverer = {};

    /// Whether something is done outside of the store.
    bool hands_over() const { return handle || deliverer; }
    /// Of the struct whose options the user has given.
    const char* options_name() const;
    /// ConfigError for a name or an option that cannot work.
    void check() const;
    /// Projects, or reacts to, as many events as fit into one transaction, of whole slots and one slot at least;
    /// returns how many. Where there is a handler instead: all, since nothing is left to do.
    std::size_t project_some(Transaction& tx, std::span<const RecordedEvent> events,
                             const store::Capabilities& capabilities) const;
};

/// What runs these, which are for one aggregate each.
Consumer consumer_of(std::string_view name, std::vector<AggregateProjection> projections, const FollowOptions& options);

/// What delivers effects under this name.
Consumer consumer_of(std::string_view name, const std::shared_ptr<Deliverer>& deliverer);

/// What takes one of the build's partitions each; the consumer itself if there is but one.
std::vector<Consumer> partitions_of(const Consumer& whole);

/// The slots of a command that followers see: those with its events, and the one with its effects.
std::vector<Receipt::Written> slots_of(const Receipt& receipt);

/// Whether the same may go well a moment later.
bool may_pass(const std::exception_ptr& failure);

/// "Deposited, version 3 of stream 'account-alice'"
std::string described(const RecordedEvent& event);

}  // namespace varve::detail
