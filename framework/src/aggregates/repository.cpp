#include <varve/aggregates/repository.h>
#include <varve/events/stored_slot.h>

#include <algorithm>
#include <limits>

namespace varve::aggregates {

using namespace transactions;

namespace {

void apply(const AggregateType& type, const std::string& stream, const StreamRead::One& slot, void* state) {
    for (const RecordedEvent& event : events::decode_payload(stream, slot.version, slot.content))
        type.apply(state, event);
}

}  // namespace

Repository::Repository(Coordinator& coordinator, std::size_t remembered_max)
    : coordinator_(coordinator), remembered_max_(remembered_max) {}

Folded Repository::fold(const AggregateType& type, const std::string& stream, auto read_from) {
    Folded folded = recall(type, stream);
    const Version known = folded.head;
    // The slot that is known already is read again: it tells whether it has been finalised.
    const StreamRead read = read_from(std::max<Version>(known, 1));
    for (const StreamRead::One& slot : read.slots) {
        if (slot.version > known) apply(type, stream, slot, folded.state.get());
    }
    folded.head = std::max(known, read.head);
    folded.next = read.next;
    if (folded.head > known) remember(type, stream, folded);
    return folded;
}

Folded Repository::load(const AggregateType& type, const std::string& stream) {
    return fold(type, stream, [&](Version first) { return coordinator_.reader().stream(stream, first); });
}

Folded Repository::load(const AggregateType& type, const std::string& stream, SettledReader& reader) {
    return fold(type, stream, [&](Version first) { return reader.stream(stream, first); });
}

Folded Repository::load_at(const AggregateType& type, const std::string& stream, Version last) {
    Folded folded{.state = type.make()};
    if (last < 1) return folded;
    for (const StreamRead::One& slot : coordinator_.reader().stream(stream, 1, last).slots) {
        apply(type, stream, slot, folded.state.get());
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
    Folded folded{.state = type.make()};
    for (std::size_t i = 0; i < until; ++i) {
        for (const RecordedEvent& event : slots[i].second) type.apply(folded.state.get(), event);
        folded.head = slots[i].first;
    }
    return folded;
}

Folded Repository::recall(const AggregateType& type, const std::string& stream) {
    {
        const std::lock_guard lock{mutex_};
        const auto found = entries_.find(stream);
        if (found != entries_.end() && found->second->type == &type) {
            recent_.splice(recent_.begin(), recent_, found->second);
            return {.state = type.copy(found->second->state.get()), .head = found->second->head, .next = {}};
        }
    }
    return {.state = type.make()};
}

void Repository::remember(const AggregateType& type, const std::string& stream, const Folded& folded) {
    if (remembered_max_ == 0) return;
    const std::shared_ptr<const void> state = type.copy(folded.state.get());
    const std::lock_guard lock{mutex_};
    const auto found = entries_.find(stream);
    if (found != entries_.end()) {
        Entry& entry = *found->second;
        if (entry.type == &type && entry.head >= folded.head) return;
        entry = {stream, &type, state, folded.head};
        recent_.splice(recent_.begin(), recent_, found->second);
        return;
    }
    recent_.push_front({stream, &type, state, folded.head});
    entries_.emplace(stream, recent_.begin());
    if (entries_.size() > remembered_max_) {
        entries_.erase(recent_.back().stream);
        recent_.pop_back();
    }
}

}  // namespace varve::aggregates
