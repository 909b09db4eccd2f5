#include "../transactions/mutants.h"

#include <varve/aggregates/repository.h>
#include <varve/core/error.h>
#include <varve/events/snapshot.h>
#include <varve/events/stored_slot.h>

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

}  // namespace

Repository::Repository(Coordinator& coordinator, Executor& background, std::size_t cache_bytes_max)
    : coordinator_(coordinator), background_(background), cache_(cache_bytes_max) {}

Folded Repository::fold(const AggregateType& type, const std::string& stream, Known known, auto read_from) {
    const SteadyTime began = coordinator_.runtime().clock.steady_now();
    const bool was_cached = known.state != nullptr;
    if (!was_cached && type.snapshots != nullptr) known = from_snapshot(type, stream);
    // A slot that has not been seen finalised is read again: it tells whether it has been since.
    StreamRead read = read_from(std::max<Version>(known.settled ? known.head + 1 : known.head, 1));
    if (!was_cached && read.head < known.head) {
        coordinator_.runtime().log.write(
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
    if (own) now.state = std::move(own);
    now.head = std::max(known.head, read.head);
    now.next_epoch = read.next.epoch;
    now.settled = !read.unfinalised || VARVE_MUTANT("what is not finalised is remembered as settled");
    const bool learnt =
        !was_cached || now.head > known.head || now.settled > known.settled || now.next_epoch > known.next_epoch;
    if (now.head > 0 && learnt) keep(type, stream, now, coordinator_.runtime().clock.steady_now() - began);
    if (!now.state) now.state = type.make();
    return {.state = std::move(now.state),
            .head = now.head,
            .next = read.next,
            .snapshot = now.snapshot,
            .bytes_since = now.bytes_since};
}

Known Repository::from_snapshot(const AggregateType& type, const std::string& stream) {
    ensure_snapshots_table();
    const auto snapshot = events::read_snapshot(coordinator_.store(), stream, type.snapshots->schema);
    if (!snapshot) return {};
    std::shared_ptr<const void> state = type.snapshots->decode(snapshot->state);
    if (!state) {
        coordinator_.runtime().log.write(
            LogLevel::warning, "the snapshot of stream '" + stream + "' cannot be read; its events are folded instead");
        return {};
    }
    // Its slot is looked at all the same: a snapshot is not the stream.
    return {.state = std::move(state), .head = snapshot->version, .snapshot = snapshot->version};
}

void Repository::remember(const AggregateType& type, const std::string& stream, const Folded& seen,
                          Written written) noexcept {
    try {
        keep(type, stream,
             {.state = std::move(written.state),
              .head = seen.head + 1,
              .settled = written.settled || VARVE_MUTANT("what is not finalised is remembered as settled"),
              .snapshot = seen.snapshot,
              .bytes_since = seen.bytes_since + written.event_bytes},
             {});
    } catch (...) {
        // What has been committed is not undone by a bytes() that throws. The next load reads it.
        coordinator_.runtime().log.write(LogLevel::warning, "the state of stream '" + stream + "' is not remembered");
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

SnapshotCheck Repository::check_snapshot(const AggregateType& type, const std::string& stream) {
    if (type.snapshots == nullptr) return {};
    ensure_snapshots_table();
    auto snapshot = events::read_snapshot(coordinator_.store(), stream, type.snapshots->schema);
    if (!snapshot) return {};
    const Folded folded = load_at(type, stream, snapshot->version);
    return {.version = snapshot->version,
            .stored = std::move(snapshot->state),
            .folded = folded.head == snapshot->version ? type.snapshots->encode(folded.state.get())
                                                       : "the stream ends at version " + std::to_string(folded.head)};
}

Folded Repository::load(const AggregateType& type, const std::string& stream) {
    return fold(type, stream, cache_.find(type, stream).value_or(Known{}),
                [&](Version first) { return coordinator_.reader().stream(stream, first); });
}

Folded Repository::load(const AggregateType& type, const std::string& stream, SettledReader& reader, Ask ask) {
    const Known known = cache_.find(type, stream).value_or(Known{});
    if (known.settled && ask == Ask::last_known) {
        return {.state = known.state,
                .head = known.head,
                .next = {known.next_epoch},
                .snapshot = known.snapshot,
                .bytes_since = known.bytes_since,
                .asked = false};
    }
    return fold(type, stream, known, [&](Version first) { return reader.stream(stream, first); });
}

Folded Repository::load_at_head(const AggregateType& type, const std::string& stream, SettledReader& reader,
                                Version head) {
    Known known = cache_.find(type, stream).value_or(Known{});
    // It can only be held behind a head that is finalised.
    if (known.state && known.head == head) known.settled = true;
    if (known.settled && known.head == head) {
        return {.state = known.state, .head = head, .snapshot = known.snapshot, .bytes_since = known.bytes_since};
    }
    return fold(type, stream, known, [&](Version first) { return reader.stream(stream, first); });
}

Folded Repository::load_at(const AggregateType& type, const std::string& stream, Version last) {
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
