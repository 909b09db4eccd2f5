#include "events/stored_slot.h"
#include "transactions/paging.h"
#include "transactions/settled_reader.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>
#include <varve/events/event_store.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace varve {

using namespace transactions;

EventStore::EventStore(Coordinator& coordinator, RetryPolicy retry) : coordinator_(coordinator), retry_(retry) {}

Result<Appended, WrongVersion> EventStore::append(const std::string& stream, const std::vector<EventData>& events,
                                                  Expected expected, const Metadata& metadata) {
    if (events.empty()) throw InvalidError("an append to stream '" + stream + "' has no events");
    if (is_internal(stream))
        throw InvalidError("stream '" + stream + "' is the framework's own: names with '$' are reserved");
    if (const auto aggregate = events::aggregate_of(stream); projected_.contains(aggregate)) {
        throw InvalidError("stream '" + stream + "' is that of an aggregate with inline projections, which an append " +
                           "would pass by; use Application::append, or Transaction::append, for '" +
                           std::string{aggregate} + "'");
    }
    if (expected.version_ < 0) {
        throw InvalidError("an append to stream '" + stream + "' expects version " + std::to_string(expected.version_) +
                           "; versions begin with 1, and 0 means that there is none yet");
    }
    const Runtime runtime = coordinator_.runtime();
    const Time began = runtime.clock.get().now();
    const store::Item payload = events::encode_payload(events, metadata, began);
    for (Backoff backoff{retry_, runtime};;) {
        const std::string tx = uuid7(runtime);
        SettledReader reader{coordinator_, tx, began, backoff.until()};
        StreamRead read;
        try {
            read = reader.head(stream);
        } catch (const BlockedError&) {
            if (!backoff.next()) throw;
            continue;
        }
        const bool fits = expected.kind_ == Expected::Kind::any ||
                          (expected.kind_ == Expected::Kind::exists ? read.head > 0 : read.head == expected.version_);
        if (!fits) return WrongVersion{read.head};
        Plan plan;
        plan.slots.push_back({slot_key(stream, read.head + 1), read.next.epoch, payload});
        const auto outcome = coordinator_.commit(plan, tx, began, backoff.until());
        if (const auto* commit = std::get_if<Commit>(&outcome)) return Appended{read.head + 1, commit->tx};
        const auto& conflict = std::get<Conflict>(outcome);
        if (!(conflict.over ? backoff.next_without_delay() : backoff.next())) {
            ConflictDetails details = conflict.details;
            details.attempts = backoff.attempts();
            details.met = conflict.what;
            throw ConflictError("gave up appending to stream '" + stream + "' " + backoff.spent() +
                                    "; the last one met this: " + conflict.what,
                                std::move(details));
        }
    }
}

namespace {

void check_version(const std::string& stream, Version version) {
    if (version >= 1) return;
    throw InvalidError("versions of stream '" + stream + "' begin with 1, not " + std::to_string(version));
}

std::vector<RecordedEvent> events_of(const std::string& stream, const StreamRead& read) {
    std::vector<RecordedEvent> events;
    for (const StreamRead::One& slot : read.slots) {
        std::vector<RecordedEvent> some = events::decode_payload(stream, slot.version, slot.content);
        std::move(some.begin(), some.end(), std::back_inserter(events));
    }
    return events;
}

}  // namespace

Stream EventStore::load(const std::string& stream, Version first, Version last) {
    check_version(stream, first);
    const StreamRead read = coordinator_.reader().stream(stream, first, last);
    const bool reaches_the_end = last == std::numeric_limits<Version>::max() && !read.slots.empty();
    return {.events = events_of(stream, read), .head = reaches_the_end ? read.head : head(stream)};
}

StreamPage EventStore::load(const std::string& stream, const PageOptions& page, Order order) {
    const bool newest_first = order == Order::newest_first;
    const std::string list = "the stream '" + stream + (newest_first ? "', newest first" : "', oldest first");
    Version from = 1;
    if (const std::optional<std::string> at = continued(list, page)) {
        const char* const end = at->data() + at->size();
        const auto [stopped, error] = std::from_chars(at->data(), end, from);
        if (error != std::errc{} || stopped != end || from < 1) throw_foreign_token(list, page);
    } else if (newest_first) {
        from = head(stream);
        if (from == 0) return {};
    }
    const Version before_or_after = newest_first ? from - 1 : std::numeric_limits<Version>::max() - from;
    const Version others = static_cast<Version>(std::min(page.limit - 1, static_cast<std::size_t>(before_or_after)));
    const Version first = newest_first ? from - others : from;
    const Version last = newest_first ? from : from + others;
    StreamRead read = coordinator_.reader().stream(stream, first, last);
    const bool goes_on = newest_first ? first > 1 : read.head == last;
    const std::string next =
        token(list, goes_on ? std::optional{std::to_string(newest_first ? first - 1 : last + 1)} : std::nullopt);
    if (newest_first) std::ranges::reverse(read.slots);
    return {.events = events_of(stream, read), .next = next};
}

Stream EventStore::load_as_of(const std::string& stream, Time moment) {
    Stream loaded = load(stream);
    // Clocks may disagree, versions do not: what precedes an event of that time was there.
    const auto last = std::find_if(loaded.events.rbegin(), loaded.events.rend(),
                                   [&](const RecordedEvent& event) { return event.time <= moment; });
    loaded.events.erase(last.base(), loaded.events.end());
    return loaded;
}

std::vector<Effect> EventStore::effects(const std::string& stream, Version version) {
    check_version(stream, version);
    const StreamRead read = coordinator_.reader().stream(stream, version, version);  // it may not be in place yet
    if (read.slots.empty()) return {};
    return events::decode_effects(stream, version, read.slots.front().content);
}

Version EventStore::head(const std::string& stream) {
    return coordinator_.reader().head(stream).head;
}

}  // namespace varve
