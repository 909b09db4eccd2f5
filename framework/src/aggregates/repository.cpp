#include "../transactions/mutants.h"

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

Repository::Repository(Coordinator& coordinator, std::size_t cache_bytes_max)
    : coordinator_(coordinator), cache_(cache_bytes_max) {}

Folded Repository::fold(const AggregateType& type, const std::string& stream, const Known& known, auto read_from) {
    // A slot that has not been seen finalised is read again: it tells whether it has been since.
    const StreamRead read = read_from(std::max<Version>(known.settled ? known.head + 1 : known.head, 1));
    std::shared_ptr<void> own;
    for (const StreamRead::One& slot : read.slots) {
        if (slot.version <= known.head) continue;
        if (!own) own = known.state ? type.copy(known.state.get()) : type.make();
        apply(type, stream, slot, own.get());
    }
    Folded folded{
        .state = own ? std::move(own) : known.state, .head = std::max(known.head, read.head), .next = read.next};
    const bool settled = !read.unfinalised || VARVE_MUTANT("what is not finalised is remembered as settled");
    const bool learnt = folded.head > known.head || settled > known.settled || folded.next.epoch > known.next_epoch;
    if (folded.head > 0 && learnt) {
        cache_.put(type, stream,
                   {.state = folded.state, .head = folded.head, .next_epoch = folded.next.epoch, .settled = settled});
    }
    if (!folded.state) folded.state = type.make();
    return folded;
}

void Repository::remember(const AggregateType& type, const std::string& stream, std::shared_ptr<const void> state,
                          Version head, bool settled) {
    settled = settled || VARVE_MUTANT("what is not finalised is remembered as settled");
    cache_.put(type, stream, {.state = std::move(state), .head = head, .next_epoch = 0, .settled = settled});
}

Folded Repository::load(const AggregateType& type, const std::string& stream) {
    const Known known = cache_.find(type, stream).value_or(Known{});
    return fold(type, stream, known, [&](Version first) { return coordinator_.reader().stream(stream, first); });
}

Folded Repository::load(const AggregateType& type, const std::string& stream, SettledReader& reader, Ask ask) {
    const Known known = cache_.find(type, stream).value_or(Known{});
    if (known.settled && ask == Ask::last_known) {
        return {.state = known.state, .head = known.head, .next = {known.next_epoch}, .asked = false};
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
