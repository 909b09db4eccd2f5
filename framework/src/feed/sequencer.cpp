#include "feed/sequencer.h"

#include "core/planted_faults.h"
#include "transactions/in_turn.h"
#include "transactions/settler.h"

#include <varve/core/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve::feed {

using namespace transactions;

namespace {

constexpr std::size_t bells_at_a_time = 200;
constexpr Duration asks_for_shards_after = std::chrono::seconds{1};
constexpr std::size_t watermarks_known_max = 50'000;
constexpr std::size_t reported_max = 1'000;

bool is_of_aggregate(const store::Key& slot) {
    return slot.table == events_table().name && !is_internal(slot.partition);
}

}  // namespace

bool Sequencer::round() {
    claimed_.clear();
    fences_.clear();
    void_.clear();
    has_more_ = false;
    try {
        if (!end_) begin_anew();
        std::vector<Standing> standing = next_bells();
        const bool has_worked = !standing.empty() && work(std::move(standing));
        leaves_more_ = leaves_more_ || has_more_;
        if (has_worked || !std::ranges::all_of(shards_, &Shard::is_through)) return true;
        std::ranges::fill(shards_, Shard{});
        return std::exchange(leaves_more_, false);  // bells that were met before there was room for their slots
    } catch (...) {
        end_.reset();
        throw;
    }
}

void Sequencer::begin_anew() {
    watermarks_.clear();
    // In this order. Whoever appends the next piece has made sure that the watermarks have this one, so the last piece
    // is the only one that they may lack. And they are read after the end of the log: what another sequencer appends
    // after that is refused here, or has this one refused.
    const std::optional<LogItem> last = last_item(store_);
    if (last && !planted(PlantedFault::a_sequencer_begins_without_the_last_watermarks)) raise(last->runs);
    end_ = last ? last->last() : 0;
}

std::vector<Sequencer::Standing> Sequencer::next_bells() {
    std::vector<unsigned> shards;
    for (std::size_t i = 0; i < shards_.size(); ++i)
        shards.push_back(static_cast<unsigned>((rounds_ + i) % shards_.size()));
    ++rounds_;
    std::vector<store::Record> records;
    read_next(shards, records);
    std::erase_if(shards, [&](unsigned shard) { return !shards_[shard].next; });
    read_next(shards, records);
    std::vector<Standing> bells;
    for (const store::Record& record : records) {
        try {
            bells.push_back({.bell = decode_bell(record.key, record.item)});
        } catch (const CorruptionError& error) {
            report(error.what());
        }
    }
    return bells;
}

void Sequencer::read_next(const std::vector<unsigned>& shards, std::vector<store::Record>& bells) {
    const std::size_t room = bells_at_a_time - bells.size();
    if (shards.empty() || room < shards.size()) return;
    std::vector<store::Query> queries;
    for (const unsigned shard : shards) {
        store::Query query = bells_in(shard);
        query.limit = room / shards.size();
        query.next = shards_[shard].next;
        queries.push_back(std::move(query));
    }
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    std::vector<store::Key> setting;
    if (now >= asks_for_shards_at_) setting.push_back(feed_setting_key());
    store::FoundTogether found = store_.read_together(setting, queries);
    for (std::size_t i = 0; i < shards.size(); ++i) {
        Shard& shard = shards_[shards[i]];
        store::Page& page = found.pages[i];
        shard.next = std::move(page.next);
        shard.is_through = shard.is_through || !shard.next;
        std::ranges::move(page.records, std::back_inserter(bells));
    }
    if (setting.empty()) return;
    learn_shards(found.items.front());
    asks_for_shards_at_ = now + asks_for_shards_after;
}

void Sequencer::learn_shards(const std::optional<store::Item>& setting) {
    if (planted(PlantedFault::a_sequencer_does_not_learn_of_new_shards)) return;
    try {
        const std::size_t shards = announced_bell_shards(setting);
        if (shards > shards_.size()) shards_.resize(shards);
    } catch (const CorruptionError& error) {
        report(error.what());  // those that are known go on
    }
}

bool Sequencer::work(std::vector<Standing> bells) {
    std::vector<store::Key> slots;
    for (const Standing& one : bells) slots.push_back(one.bell.slot);
    read_in_turn(store_, slots, [&](std::size_t i, std::optional<store::Item> item) {
        try {
            look_at(bells[i], std::move(item));
        } catch (const CorruptionError& error) {
            report(error.what());
        }
    });
    read_watermarks(bells);
    look_for_void(bells);
    std::vector<Run> runs = new_runs(bells);
    const bool has_appended = !runs.empty();
    if (has_appended) append(std::move(runs));
    if (!end_) return true;  // another sequencer was faster: what it has appended is not known here
    const bool has_settled = settle();
    remove(bells);
    return has_appended || has_settled || has_more_;
}

void Sequencer::look_at(Standing& standing, std::optional<store::Item> item) {
    const Bell& bell = standing.bell;
    const Slot slot = decode_slot(bell.slot, item);
    if (const auto* committed = std::get_if<Committed>(&slot)) {
        standing.listed = coordinator_.resolver().participants(*committed);
        if (planted(PlantedFault::the_other_participants_are_not_put_in_order)) standing.listed.clear();
        std::erase_if(standing.listed, [](const store::Key& key) { return !is_of_aggregate(key); });
        standing.slots = standing.listed;
        if (is_followed(bell.slot, committed->payload)) standing.slots.push_back(bell.slot);
        const bool is_its_own = committed->write_id == tx_of(bell);  // else its atomic request was refused
        if (is_its_own && !planted(PlantedFault::what_stands_beside_is_not_put_in_order))
            std::ranges::copy_if(bell.beside, std::back_inserter(standing.slots), is_of_aggregate);
        standing.is_over = standing.slots.empty();
    } else if (const auto* free = std::get_if<Free>(&slot)) {
        if (free->epoch > bell.epoch) {
            standing.is_over = true;  // it was fenced
        } else if (is_to_be_fenced(bell)) {
            fences_.insert_or_assign(bell.slot, fence_free_slot(bell.slot, free->epoch));
        }
    } else if (item && claim_on(bell.slot, *item)) {
        claimed_.emplace(bell.slot, std::move(*item));
    }
}

bool Sequencer::is_to_be_fenced(const Bell& bell) {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    const store::Key key = bell_key(bell);
    if (now - sightings_.since(key, store::to_string(bell.slot), now) < coordinator_.options().lease) return false;
    static_cast<void>(sightings_.since(key, "is fenced", now));  // once in a lease, whatever becomes of it
    return true;
}

void Sequencer::read_watermarks(const std::vector<Standing>& bells) {
    if (watermarks_.size() > watermarks_known_max) watermarks_.clear();
    std::set<std::string> streams;
    for (const Standing& one : bells) {
        for (const store::Key& slot : one.slots) {
            if (!watermarks_.contains(slot.partition)) streams.insert(slot.partition);
        }
    }
    if (streams.empty()) return;
    std::vector<store::Key> keys;
    for (const std::string& stream : streams) keys.push_back(watermark_key(stream));
    const std::vector<std::optional<store::Item>> items = store_.read(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        try {
            watermarks_.emplace(keys[i].partition, watermark(keys[i], items[i]));
        } catch (const CorruptionError& error) {
            report(error.what());  // its stream stays behind
        }
    }
}

bool Sequencer::is_logged(const store::Key& slot) const {
    const auto found = watermarks_.find(slot.partition);
    return found != watermarks_.end() && found->second >= version_of(slot);
}

void Sequencer::look_for_void(const std::vector<Standing>& bells) {
    std::set<store::Key> others;
    for (const Standing& one : bells) {
        for (const store::Key& slot : one.listed) {
            if (slot != one.bell.slot && !is_logged(slot)) others.insert(slot);
        }
    }
    const std::vector<store::Key> keys(others.begin(), others.end());
    read_in_turn(store_, keys, [&](std::size_t i, std::optional<store::Item> item) {
        try {
            // Each was claimed before the transaction committed: what is free now was reserved in vain.
            if (std::holds_alternative<Free>(decode_slot(keys[i], item))) void_.insert(keys[i]);
            if (item && claim_on(keys[i], *item)) claimed_.emplace(keys[i], std::move(*item));
        } catch (const CorruptionError& error) {
            report(error.what());
        }
    });
}

std::vector<Run> Sequencer::new_runs(const std::vector<Standing>& bells) {
    std::vector<store::Query> queries;
    std::set<std::string> asked;
    for (const Standing& one : bells) {  // what a piece of the log has no room for is of the last
        for (const store::Key& slot : one.slots) {
            const auto after = watermarks_.find(slot.partition);
            if (after == watermarks_.end() || is_logged(slot) || !asked.insert(slot.partition).second) continue;
            queries.push_back({.table = events_table().name, .partition = slot.partition, .first = after->second + 1});
        }
    }
    if (queries.empty()) return {};
    const std::size_t of_each = std::max<std::size_t>(slots_in_item_max / queries.size(), 5);
    for (store::Query& query : queries) query.limit = of_each;
    std::vector<Run> runs;
    std::size_t i = 0;
    for (const store::Page& page : store_.read_together({}, queries).pages) {
        const std::string& stream = queries[i++].partition;
        const Version after = watermarks_.at(stream);
        Run run{.stream = stream, .first = after + 1, .last = after};
        bool is_blocked = false;
        for (const store::Record& record : page.records) {
            try {
                const Slot slot = decode_slot(record.key, record.item);
                const bool is_committed =
                    std::holds_alternative<Committed>(slot) ||
                    (planted(PlantedFault::what_is_undecided_is_put_in_order) && std::holds_alternative<Pending>(slot));
                is_blocked = !is_committed || version_of(record.key) != run.last + 1;
                if (claim_on(record.key, record.item)) claimed_.emplace(record.key, record.item);
            } catch (const CorruptionError& error) {
                report(error.what());
                is_blocked = true;
            }
            if (is_blocked) break;
            ++run.last;
        }
        has_more_ = has_more_ || (page.next && !is_blocked);
        if (run.last > after) runs.push_back(std::move(run));
    }
    return runs;
}

void Sequencer::append(std::vector<Run> runs) {
    const std::size_t bytes_max = std::min(log_item_bytes_max, store_.capabilities().item_bytes_max / 2);
    LogItem item{.first = *end_ + 1, .runs = {}};
    std::size_t slots = 0;
    std::size_t bytes = 0;
    for (Run& run : runs) {
        const std::size_t room = slots_in_item_max - slots;
        const std::size_t size = stored_bytes(run);
        if (room == 0 || (bytes > 0 && bytes + size > bytes_max)) {
            has_more_ = true;
            break;
        }
        if (run.size() > room) {
            run.last = run.first + static_cast<Version>(room) - 1;
            has_more_ = true;
        }
        slots += run.size();
        bytes += size;
        item.runs.push_back(std::move(run));
    }
    if (planted(PlantedFault::watermarks_are_raised_before_the_log)) raise(item.runs);
    const store::Write write = feed::append(item);
    const store::WriteAnswer answer = store_.write({&write, 1}).front();
    if (const auto* failure = std::get_if<Failure>(&answer)) raise_certain(*failure);
    if (const auto* refused = std::get_if<store::Refused>(&answer)) {
        // The same at the same place is as good as ours, and probably is ours: an answer may get lost.
        const bool is_the_same = refused->current == std::get<store::Put>(write.action).item;
        if (!is_the_same && !planted(PlantedFault::a_sequencer_that_was_refused_goes_on)) return end_.reset();
    }
    end_ = item.last();
    logged_ += slots;
    raise(item.runs);
}

void Sequencer::raise(const std::vector<Run>& runs) {
    std::map<std::string, Version> last;  // an import has written pieces that name a stream several times
    for (const Run& run : runs) last[run.stream] = run.last;
    std::vector<store::Write> writes;
    for (const auto& [stream, version] : last) writes.push_back(raise_watermark(stream, version));
    for (const store::WriteAnswer& answer : store_.write(writes)) {
        if (const auto* failure = std::get_if<Failure>(&answer)) raise_certain(*failure);
    }
    for (const auto& [stream, version] : last) watermarks_[stream] = version;
}

bool Sequencer::settle() {
    bool has_settled = false;
    std::vector<store::Write> fences;
    for (const auto& [slot, fence] : fences_) fences.push_back(fence);
    if (!fences.empty()) {
        has_settled = std::ranges::any_of(store_.write(fences), [](const store::WriteAnswer& answer) {
            return std::holds_alternative<store::Applied>(answer);
        });
    }
    std::vector<Resolver::Claimed> claimed;
    for (const auto& [key, item] : claimed_) claimed.push_back({key, item});
    const auto report = [&](const Error& error) { this->report(error.what()); };
    return settle_each(coordinator_.resolver(), claimed, report) > 0 || has_settled;
}

void Sequencer::remove(const std::vector<Standing>& bells) {
    std::vector<store::Write> removals;
    for (const Standing& one : bells) {
        const bool is_in_the_log = !one.slots.empty() && std::ranges::all_of(one.slots, [&](const store::Key& slot) {
            return is_logged(slot) || void_.contains(slot) ||
                   planted(PlantedFault::a_bell_goes_when_its_slot_is_committed);
        });
        if (one.is_over || is_in_the_log) removals.push_back(remove_bell(one.bell));
    }
    if (!removals.empty()) static_cast<void>(store_.write(removals));  // what stands on, the next round meets again
}

void Sequencer::report(const std::string& what) {
    if (reported_.size() >= reported_max) reported_.clear();
    if (!reported_.insert(what).second) return;
    try_to_log(coordinator_.runtime().log, LogLevel::error,
               [&] { return "followers do not see all events, since they cannot be put in order: " + what; });
}

}  // namespace varve::feed
