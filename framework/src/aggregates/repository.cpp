#include "aggregates/repository.h"

#include "core/planted_faults.h"
#include "events/snapshot.h"
#include "events/stored_slot.h"

#include <varve/core/error.h>
#include <varve/store/adapter.h>

#include <algorithm>
#include <limits>

namespace varve::aggregates {

using namespace transactions;

namespace {

/// Returns the bytes of the events' data.
std::size_t apply(const AggregateType& type, const std::string& stream, const StreamRead::One& slot, void* state) {
    std::size_t bytes = 0;
    for (const RecordedEvent& event : events::decode_payload(stream, slot.version, slot.content)) {
        type.apply(state, event);
        bytes += event.event.data.size();
    }
    return bytes;
}

bool is_due(const SnapshotPolicy& policy, const Known& known, Duration load_time) {
    return (policy.every_slots > 0 && known.head - known.snapshot >= policy.every_slots) ||
           (policy.every_bytes > 0 && known.bytes_since >= policy.every_bytes) ||
           (policy.load_time_max > Duration::zero() && load_time > policy.load_time_max);
}

/// A slot that has not been seen finalised is read again: it tells whether it has been since.
Version first_unknown(const Known& known) {
    return std::max<Version>(known.settled ? known.head + 1 : known.head, 1);
}

/// How many slots are read along with a snapshot: its own, and as many as the policy lets a stream grow beyond it. 0:
/// too many to be read in vain.
std::size_t newest_slots(const SnapshotPolicy& policy) {
    constexpr Version worth_it_max = 128;
    return policy.every_slots > 0 && policy.every_slots < worth_it_max
               ? static_cast<std::size_t>(policy.every_slots) + 1
               : 0;
}

std::optional<store::Item> item(store::ItemStore& store, const store::Key& key) {
    return std::move(store.read({&key, 1}).front());
}

}  // namespace

Repository::Repository(Coordinator& coordinator, Executor& background, std::size_t cache_bytes_max)
    : coordinator_(coordinator), background_(background), cache_(cache_bytes_max) {}

Folded Repository::fold(const AggregateType& type, const std::string& stream, Known known, auto read_item,
                        auto read_from) {
    const SteadyTime began = coordinator_.runtime().clock.get().steady_now();
    const bool was_cached = known.state != nullptr;
    if (!was_cached && type.snapshots != nullptr) {
        ensure_snapshots_table();
        known = from_snapshot(type, stream, read_item(events::snapshot_key(stream, type.snapshots->schema)));
    }
    StreamRead read = read_from(first_unknown(known));
    if (!was_cached && read.head < known.head) {
        coordinator_.runtime().log.get().write(
            LogLevel::warning, "the snapshot of stream '" + stream + "' is of version " + std::to_string(known.head) +
                                   ", which the stream does not have; its events are folded instead");
        known = {};
        read = read_from(1);
    }
    Known now = known;
    std::shared_ptr<void> own;
    for (const StreamRead::One& slot : read.slots) {
        if (slot.version <= known.head) continue;
        if (!own) own = known.state ? type.copy(known.state.get()) : type.make();
        now.bytes_since += apply(type, stream, slot, own.get());
    }
    if (own) {
        now.state = std::move(own);
        now.rows.reset();
    }
    now.head = std::max(known.head, read.head);
    now.next_epoch = read.next.epoch;
    now.settled = !read.unfinalised || planted(PlantedFault::what_is_not_finalised_is_remembered_as_settled);
    const bool learnt =
        !was_cached || now.head > known.head || now.settled > known.settled || now.next_epoch > known.next_epoch;
    if (now.head > 0 && learnt) keep(type, stream, now, coordinator_.runtime().clock.get().steady_now() - began);
    if (!now.state) now.state = type.make();
    return {.state = std::move(now.state),
            .head = now.head,
            .next = read.next,
            .snapshot = now.snapshot,
            .bytes_since = now.bytes_since};
}

Known Repository::from_snapshot(const AggregateType& type, const std::string& stream,
                                const std::optional<store::Item>& item) {
    const auto snapshot = events::decode_snapshot(item);
    if (!snapshot) return {};
    std::shared_ptr<const void> state = type.snapshots->decode(snapshot->state);
    if (!state) {
        coordinator_.runtime().log.get().write(
            LogLevel::warning, "the snapshot of stream '" + stream + "' cannot be read; its events are folded instead");
        return {};
    }
    // Its slot is looked at all the same: a snapshot is not the stream.
    return {.state = std::move(state), .head = snapshot->version, .snapshot = snapshot->version};
}

void Repository::remember(const AggregateType& type, const std::string& stream, const Folded& seen,
                          NewState made) noexcept {
    try {
        keep(type, stream,
             {.state = std::move(made.state),
              .head = seen.head + 1,
              .settled = made.settled || planted(PlantedFault::what_is_not_finalised_is_remembered_as_settled),
              .snapshot = seen.snapshot,
              .bytes_since = seen.bytes_since + made.event_bytes,
              .rows = std::move(made.rows)},
             {});
    } catch (...) {
        // What has been committed is not undone by a bytes() that throws. The next load reads it.
        try_to_log(coordinator_.runtime().log, LogLevel::warning,
                   [&] { return "the state of stream '" + stream + "' is not remembered"; });
    }
}

void Repository::keep(const AggregateType& type, const std::string& stream, Known known, Duration load_time) {
    // What is not finalised yet would make whoever loads the snapshot settle it first: it can wait.
    if (type.snapshots != nullptr && known.settled && known.head > known.snapshot &&
        is_due(type.snapshots->policy, known, load_time)) {
        known.snapshot = known.head;
        known.bytes_since = 0;
        background_.post([this, snapshots = type.snapshots, stream, state = known.state, version = known.head] {
            store::ItemStore& store = coordinator_.store();
            ensure_snapshots_table();
            const store::Write write = events::write_snapshot(
                stream, snapshots->schema, {.version = version, .state = snapshots->encode(state.get())});
            const std::size_t bytes = store::bytes(write.key, std::get<store::Put>(write.action).item);
            const std::size_t bytes_max = store.capabilities().item_bytes_max;
            if (bytes > bytes_max) throw InvalidError(store::too_large(write.key, bytes, bytes_max));
            const store::WriteAnswer answer = store.write({&write, 1}).front();
            if (const auto* failure = std::get_if<Failure>(&answer)) raise(*failure);
        });
    }
    cache_.put(type, stream, std::move(known));
}

void Repository::ensure_snapshots_table() {
    std::call_once(snapshots_table_, [this] { coordinator_.store().ensure_table(events::snapshots_table()); });
}

void Repository::add(const AggregateType& type) {
    types_.add(type.named);
    const MutexLock lock{mutex_};
    known_.insert_or_assign(type.named.name, &type);
}

const AggregateType* Repository::known(std::string_view name) const {
    const MutexLock lock{mutex_};
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : found->second;
}

SnapshotCheck Repository::check_snapshot(const AggregateType& type, const std::string& stream) {
    meet(type);
    if (type.snapshots == nullptr) return {};
    ensure_snapshots_table();
    auto snapshot =
        events::decode_snapshot(item(coordinator_.store(), events::snapshot_key(stream, type.snapshots->schema)));
    if (!snapshot) return {};
    const Folded folded = load_at(type, stream, snapshot->version);
    return {.version = snapshot->version,
            .stored = std::move(snapshot->state),
            .folded = folded.head == snapshot->version ? type.snapshots->encode(folded.state.get())
                                                       : "the stream ends at version " + std::to_string(folded.head)};
}

Folded Repository::load(const AggregateType& type, const std::string& stream) {
    meet(type);
    return fold(
        type, stream, cache_.find(type, stream).value_or(Known{}),
        [&](const store::Key& key) { return item(coordinator_.store(), key); },
        [&](Version first) { return coordinator_.reader().stream(stream, first); });
}

Repository::Sought Repository::seek(const AggregateType& type, const std::string& stream, Ask ask) {
    meet(type);
    return {.type = type, .stream = stream, .known = cache_.find(type, stream).value_or(Known{}), .ask = ask};
}

Repository::Sought Repository::seek_held(const AggregateType& type, const std::string& stream, Version head) {
    Sought sought = seek(type, stream, Ask::store);
    sought.held = head;
    // Only behind a finalised slot can one be held.
    sought.known.settled = sought.known.settled || sought.is_held();
    return sought;
}

void Repository::want(const Sought& sought, SettledReader::Ahead& ahead) {
    if (sought.is_enough() || sought.is_new()) return;
    if (sought.known.state || sought.type.snapshots == nullptr) {
        ahead.streams.push_back({.table = events_table().name,
                                 .partition = sought.stream,
                                 .first = first_unknown(sought.known),
                                 .last = sought.held ? store::SortKey{*sought.held} : store::SortKey{}});
        return;
    }
    // Where a snapshot says how much of the stream is needed, the newest slots are read along with it: most often they
    // reach back to it.
    ensure_snapshots_table();
    ahead.keys.push_back(events::snapshot_key(sought.stream, sought.type.snapshots->schema));
    const std::size_t slots = newest_slots(sought.type.snapshots->policy);
    if (slots == 0) return;
    ahead.streams.push_back({.table = events_table().name,
                             .partition = sought.stream,
                             .first = Version{1},
                             .descending = true,
                             .limit = slots});
}

Folded Repository::load(Sought sought, SettledReader& reader) {
    Known& known = sought.known;
    if (sought.is_enough()) {
        return {.state = std::move(known.state),
                .head = known.head,
                .next = {known.next_epoch},
                .snapshot = known.snapshot,
                .bytes_since = known.bytes_since,
                .asked = sought.is_held(),
                .rows = std::move(known.rows)};
    }
    return fold(
        sought.type, sought.stream, std::move(known),
        [&](const store::Key& key) {
            return reader.items({&key, 1}).front();
        },
        [&](Version first) {
            if (sought.is_new()) return StreamRead{};
            return reader.stream(sought.stream, first, sought.held.value_or(std::numeric_limits<Version>::max()));
        });
}

Folded Repository::load_at(const AggregateType& type, const std::string& stream, Version last) {
    meet(type);
    const std::shared_ptr<void> state = type.make();
    Folded folded{.state = state};
    if (last < 1) return folded;
    for (const StreamRead::One& slot : coordinator_.reader().stream(stream, 1, last).slots) {
        apply(type, stream, slot, state.get());
        folded.head = slot.version;
    }
    return folded;
}

Folded Repository::load_as_of(const AggregateType& type, const std::string& stream, Time moment) {
    meet(type);
    std::vector<std::pair<Version, std::vector<RecordedEvent>>> slots;
    std::size_t until = 0;
    for (const StreamRead::One& slot : coordinator_.reader().stream(stream, 1).slots) {
        slots.emplace_back(slot.version, events::decode_payload(stream, slot.version, slot.content));
        if (!slots.back().second.empty() && slots.back().second.front().time <= moment) until = slots.size();
    }
    const std::shared_ptr<void> state = type.make();
    Folded folded{.state = state};
    for (std::size_t i = 0; i < until; ++i) {
        for (const RecordedEvent& event : slots[i].second) type.apply(state.get(), event);
        folded.head = slots[i].first;
    }
    return folded;
}

}  // namespace varve::aggregates
