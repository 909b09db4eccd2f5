#pragma once

#include <varve/core/result.h>
#include <varve/core/retry.h>
#include <varve/events/event.h>
#include <varve/transactions/options.h>

#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

namespace transactions {
class Coordinator;
}

/// What a stream must look like for an append to be accepted.
class Expected {
  public:
    /// Its head is exactly this version; 0: it does not exist.
    static Expected exact(Version version) { return Expected{Kind::exact, version}; }
    static Expected none() { return Expected{Kind::exact, 0}; }
    /// It has at least one event.
    static Expected exists() { return Expected{Kind::exists, 0}; }
    static Expected any() { return Expected{Kind::any, 0}; }

  private:
    friend class EventStore;
    enum class Kind { exact, exists, any };
    Expected(Kind kind, Version version) : kind_(kind), version_(version) {}
    Kind kind_;
    Version version_;
};

struct Appended {
    Version version;       ///< the slot that the events are in
    std::string write_id;  ///< unique; their ids begin with it
};

/// The stream is not as expected; nothing was written.
struct WrongVersion {
    Version actual;  ///< its head; 0: it does not exist
};

/// Streams of events below the level of aggregates: for imports, tools and tests. Most users want Application.
///
///     EventStore& events = bank.events();
///     auto appended = events.append("account-alice", {encode_event(Opened{"Alice"})}, Expected::none());
///
/// Threads: all methods may be called from any thread. Errors: InvalidError for what can never work, ConflictError when
/// others kept winning, InDoubtError, and those of the store.
class EventStore {
  public:
    /// For the framework: an Application has one.
    explicit EventStore(transactions::Coordinator& coordinator, RetryPolicy retry = {});

    /// Appends all events as ONE slot, all or nothing. With `any` and `exists` it is repeated until it fits; an append
    /// whose answer was lost is recognised as one's own. InvalidError for a negative version, for no events, and for an
    /// internal stream, or one of an aggregate with inline projections, which would miss the events: use
    /// Application::append. A version beyond the head is a WrongVersion, like any other: streams have no holes.
    Result<Appended, WrongVersion> append(const std::string& stream, const std::vector<EventData>& events,
                                          Expected expected, const Metadata& metadata = {});

    /// Read committed. A stream that does not exist has no events and head 0.
    Stream load(const std::string& stream, Version first = 1, Version last = std::numeric_limits<Version>::max());
    /// One page, read committed: at most `limit` slots, each with all its events. InvalidError for a `next` that is not
    /// of this stream, in this order.
    StreamPage load(const std::string& stream, const PageOptions& page, Order order = Order::oldest_first);
    /// As it was at a moment: the slots up to the last one whose time is not later.
    Stream load_as_of(const std::string& stream, Time moment);
    /// The effects in a slot (Receipt::effects_slot), read committed: those of its transaction, or none. InvalidError
    /// for a version below 1.
    std::vector<Effect> effects(const std::string& stream, Version version);
    /// The head's version, 0 if there is none. One read, whatever the stream's length.
    Version head(const std::string& stream);

    /// From now on streams of `aggregate` are not for append(). Before anything is appended.
    void has_projections(std::string_view aggregate) { projected_.emplace(aggregate); }

  private:
    transactions::Coordinator& coordinator_;
    RetryPolicy retry_;
    std::set<std::string, std::less<>> projected_;  // aggregates
};

}  // namespace varve
