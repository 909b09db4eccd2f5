#include "feed/feed.h"

#include "core/planted_faults.h"
#include "events/stored_slot.h"
#include "feed/arrival.h"
#include "feed/log.h"
#include "transactions/bell.h"
#include "transactions/in_turn.h"

#include <varve/core/error.h>

#include <algorithm>
#include <iterator>

namespace varve::feed {

using namespace transactions;

bool Filter::passes_stream(std::string_view stream) const {
    if (is_internal(stream) && !effects && !planted(PlantedFault::a_feed_shows_the_frameworks_own_streams))
        return false;
    if (!this->stream.empty() && stream != this->stream) return false;
    if (!aggregates.empty() && !aggregates.contains(events::aggregate_of(stream))) return false;
    return partition.has(stream);
}

namespace {

std::vector<RecordedEvent> effects_of(const store::Key& key, const Committed& slot) {
    std::vector<RecordedEvent> effects;
    for (Effect& one : events::decode_effects(key.partition, version_of(key), slot)) {
        effects.push_back({.stream = key.partition,
                           .version = version_of(key),
                           .index = effects.size(),
                           .id = std::move(one.id),
                           .time = one.time,
                           .event = std::move(one.effect),
                           .metadata = std::move(one.metadata)});
    }
    return effects;
}

void add_events(Batch& batch, const store::Key& key, const Committed& slot, store::Position position,
                const Filter& filter) {
    for (RecordedEvent& event :
         filter.effects ? effects_of(key, slot) : events::decode_payload(key.partition, version_of(key), slot)) {
        if (!filter.passes(event.event)) continue;
        event.position = position;
        batch.events.push_back(std::move(event));
    }
}

}  // namespace

Feed::Feed(store::ItemStore& store) : store_(store), logged_(!store.capabilities().ordered_changes) {
    if (!logged_ || read_bell_shards(store) > 0) return;
    throw ConfigError(
        "events cannot be followed in this store: it keeps no order of changes, and commits are not announced in it; "
        "set ApplicationOptions::feed to true, or use inline projections");
}

Batch Feed::read(store::Position after, std::size_t slots_max, const Filter& filter) const {
    return logged_ ? read_log(after, slots_max, filter) : read_changes(after, slots_max, filter);
}

Batch Feed::read_changes(store::Position after, std::size_t slots_max, const Filter& filter) const {
    Batch batch{.events = {}, .end = after};
    std::vector<store::Change> changes = store_.changes(events_table().name, after, slots_max);
    batch.is_last = changes.empty();
    try {
        for (store::Change& change : changes) {
            const store::Key& key = change.record.key;
            if (filter.passes_stream(key.partition) && filter.passes_version(version_of(key))) {
                Slot slot = decode_slot(key, std::move(change.record.item));
                const auto* pending = std::get_if<Pending>(&slot);
                if (pending && filter.first_slots) {
                    if (batch.end == after) batch.held = key.partition;
                    return batch;
                }
                if (pending && !pending->reserved && planted(PlantedFault::a_feed_shows_what_is_undecided))
                    slot = Committed{.write_id = pending->claim.tx, .payload = pending->payload};
                if (const auto* committed = std::get_if<Committed>(&slot))
                    add_events(batch, key, *committed, change.position, filter);
            }
            batch.end = change.position;
        }
    } catch (const CorruptionError&) {
        if (batch.end == after) throw;  // else what comes before it can be had
    }
    return batch;
}

Batch Feed::read_log(store::Position after, std::size_t slots_max, const Filter& filter) const {
    Batch batch{.events = {}, .end = after};
    const bool begins_one = after == piece_ends_.load();
    const std::vector<LogItem> items = items_from(store_, after + 1, begins_one);
    batch.is_last = items.empty();
    std::vector<store::Key> keys;
    std::vector<store::Position> positions;
    store::Position end = after;
    for (const LogItem& item : items) {
        // Ends with a piece if it can: the next batch then begins with one, which is found with one request.
        if (end > after && item.last() - after > slots_max) break;
        store::Position position = item.first;
        for (const Run& run : item.runs) {
            const bool passes = filter.passes_stream(run.stream);
            for (Version version = run.first; version <= run.last; ++version, ++position) {
                if (position <= after || end - after >= slots_max) continue;
                end = position;
                if (!passes || !filter.passes_version(version)) continue;
                keys.push_back(slot_key(run.stream, version));
                positions.push_back(position);
            }
        }
        if (end == item.last()) piece_ends_ = end;
    }
    try {
        std::size_t bytes = 0;
        read_in_turn(store_, keys, [&](std::size_t i, std::optional<store::Item> item) {
            batch.end = positions[i] - 1;
            if (bytes >= batch_bytes_max) {
                end = batch.end;
                return false;
            }
            if (item) bytes += store::bytes(keys[i], *item);
            const Slot slot = decode_slot(keys[i], std::move(item));
            const auto* committed = std::get_if<Committed>(&slot);
            if (committed == nullptr) {
                throw CorruptionError("the log of this store's events names the slot " + store::to_string(keys[i]) +
                                      ", and nothing is committed there any more; put back what was removed");
            }
            add_events(batch, keys[i], *committed, positions[i], filter);
            return true;
        });
        batch.end = end;
    } catch (const CorruptionError&) {
        if (batch.end == after) throw;  // else what comes before it can be had
    }
    return batch;
}

store::Position Feed::end() const {
    if (!logged_) return store_.last_change(events_table().name);
    const std::optional<LogItem> last = last_item(store_);
    return last ? last->last() : 0;
}

bool Feed::wait_for(const std::vector<store::Key>& slots, Clock& clock, SteadyTime until) const {
    constexpr Duration look_again_after = std::chrono::milliseconds{5};
    if (!logged_) return true;
    Arrival arrival{store_, slots};
    while (!arrival.is_complete()) {
        const Duration left = until - clock.steady_now();
        if (left <= Duration::zero()) return false;
        clock.sleep_for(std::min(left, look_again_after));
    }
    return true;
}

}  // namespace varve::feed
