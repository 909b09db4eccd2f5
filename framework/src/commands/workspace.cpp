#include "commands/workspace.h"

#include "commands/command_id.h"
#include "core/assert.h"
#include "core/planted_faults.h"
#include "events/stored_slot.h"
#include "locks/held.h"
#include "rows/stored_rows.h"
#include "store/measured_store.h"

#include <varve/core/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve::detail {

using namespace transactions;

Workspace::Workspace(const World& world, std::string tx, Time since, SteadyTime until, Reservation* reservation,
                     aggregates::Repository::Ask ask)
    : world_(world),
      reservation_(reservation),
      reader_(world.coordinator, std::move(tx), since, until, reservation),
      ask_(ask),
      until_(until),
      now_(world.coordinator.runtime().clock.get().now()) {}

bool Workspace::begin_once(Metadata metadata, const std::string& fingerprint) {
    IdSlot slot;  // at the first attempt it is taken to be free
    if (ask_ == aggregates::Repository::Ask::store) slot = read_id_slot(metadata.command_id, fingerprint, reader_);
    if (slot.ended_before) return false;
    begin_command(std::move(metadata));
    if (planted(PlantedFault::a_reaction_is_not_remembered)) return true;
    once_.push_back({.command = commands_.size() - 1, .epoch = slot.epoch, .fingerprint = fingerprint});
    return true;
}

Touched& Workspace::touch(const AggregateType& type, std::string_view id, Also also) {
    const auto found = aggregates_.find(stream_name(type, id));
    if (found != aggregates_.end()) return found->second;
    const std::string one{id};
    touch_all(type, {&one, 1}, also);
    return aggregates_.find(stream_name(type, id))->second;
}

aggregates::Repository::Sought Workspace::seek(const AggregateType& type, const std::string& stream) {
    if (reservation_ == nullptr) return world_.repository.seek(type, stream, ask_);
    return world_.repository.seek_held(type, stream, version_of(reservation_->hold(stream).key) - 1);
}

void Workspace::read_ahead(const std::map<std::string, const AggregateType*>& aggregates,
                           const std::map<store::Key, Image>& rows) {
    SettledReader::Ahead ahead;
    for (const auto& [stream, type] : aggregates) world_.repository.want(seek(*type, stream), ahead);
    if (reservation_ == nullptr) {
        for (const auto& [key, image] : rows) ahead.keys.push_back(key);
    }
    reader_.read_ahead(ahead);
}

void Workspace::read_ahead(std::vector<store::Key> rows) {
    if (reservation_ != nullptr) return;
    std::erase_if(rows, [&](const store::Key& key) { return rows_.contains(key); });
    reader_.read_ahead({.keys = std::move(rows), .streams = {}});
}

void Workspace::touch_all(const AggregateType& type, std::span<const std::string> ids, Also also) {
    std::map<std::string, std::pair<std::string_view, aggregates::Repository::Sought>> sought;  // and ids, by stream
    SettledReader::Ahead ahead;
    for (const std::string& id : ids) {
        const std::string stream = stream_name(type, id);
        if (aggregates_.contains(stream) || sought.contains(stream)) continue;
        const auto& one = sought.try_emplace(stream, id, seek(type, stream)).first->second.second;
        world_.repository.want(one, ahead);
        if (also == Also::nothing || reservation_ != nullptr || (one.is_enough() && one.known.rows)) continue;
        for (store::Key& key : own_rows(type, id)) {
            if (!rows_.contains(key)) ahead.keys.push_back(std::move(key));
        }
    }
    reader_.read_ahead(ahead);
    for (auto& [stream, one] : sought) {
        aggregates_.emplace(stream, Touched{.type = &type,
                                            .id = std::string{one.first},
                                            .seen = world_.repository.load(std::move(one.second), reader_),
                                            .own = nullptr,
                                            .events = {}});
    }
}

namespace {

/// What an event or effect takes in a slot, at most.
std::size_t stored_bytes(const EventData& data) {
    constexpr std::size_t json_around_bytes = 48;
    return data.type.size() + data.data.size() + json_around_bytes;
}

}  // namespace

void Workspace::add_effect(EventData effect) {
    if (refolding_ || other_rows_ != nullptr) return;  // it has been stored once, with the commit of its event
    ++changes_;
    event_bytes_ += stored_bytes(effect);
    effects_.push_back({commands_.size() - 1, std::move(effect)});
}

void Workspace::record(Touched& touched, EventData data, const void* event) {
    ++changes_;
    event_bytes_ += stored_bytes(data);
    touched.events.push_back({commands_.size() - 1, std::move(data)});
    if (first_ == nullptr || keeps_effects_ == &touched) first_ = &touched;
    const ProjectedEvent projected{.aggregate_id = touched.id,
                                   .version = touched.seen.head + 1,
                                   .index = touched.events.size() - 1,
                                   .time = now_,
                                   .metadata = commands_.back(),
                                   .position = 0,
                                   .event = event};
    for (const AggregateProjection* projection : world_.projections.of(*touched.type)) run(*projection, projected);
}

void Workspace::run(const AggregateProjection& projection, const ProjectedEvent& projected) {
    struct Restored {
        Running& running;
        const Running before;
        ~Restored() { running = before; }
    };
    const Restored restored{running_, std::exchange(running_, {&projection, projected.aggregate_id})};
    projection.run(transaction_, projected);
}

void Workspace::check_keeper(const store::Key& key, bool writes) const {
    const AggregateProjection* const keeper = world_.projections.keeper_of(key.table);
    const AggregateProjection* const at_work = running_.projection;
    if (at_work != nullptr && at_work->own) {
        if (keeper == at_work && key.partition == running_.aggregate_id) return;
        throw InvalidError(at_work->name() + " keeps the rows of '" + std::string{at_work->own->type.name} +
                           "' under an aggregate's id for that aggregate alone (OwnRows), and on an event of '" +
                           std::string{running_.aggregate_id} + "' it asks for " + store::to_string(key) +
                           "; such a projection reads and writes nothing else: give other rows to another projection");
    }
    if (writes && keeper != nullptr) {
        throw InvalidError("the row " + store::to_string(key) + " is kept by " + keeper->name() +
                           " alone (OwnRows) and would no longer be what the events say; change it by an event");
    }
}

std::vector<store::Key> Workspace::own_rows(const AggregateType& type, std::string_view id) const {
    std::vector<store::Key> keys;
    for (const AggregateProjection* projection : world_.projections.of(type)) {
        if (!projection->own || projection->own->sorted) continue;
        world_.row_tables.ensure(*projection->own);
        keys.push_back({std::string{projection->own->type.name}, std::string{id}});
    }
    return keys;
}

const Image* Workspace::known_row(const store::Key& key) const {
    const AggregateProjection* const keeper = world_.projections.keeper_of(key.table);
    if (keeper == nullptr || refolding_) return nullptr;
    const auto owner = aggregates_.find(stream_name(keeper->aggregate, key.partition));
    if (owner == aggregates_.end() || !owner->second.seen.rows) return nullptr;
    const aggregates::KnownRows& rows = *owner->second.seen.rows;
    const auto found = std::ranges::find(rows, key, &aggregates::KnownRow::key);
    return found == rows.end() ? nullptr : &found->image;
}

TouchedRow& Workspace::touch(const store::Key& key) {
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second;
    const Image* const known = reservation_ != nullptr ? nullptr : known_row(key);
    Image image = known != nullptr          ? *known
                  : reservation_ != nullptr ? reservation_->hold(key)
                                            : reader_.rows({&key, 1}).front();
    TouchedRow touched{.seen = image, .asked = known == nullptr, .written = false, .data = std::move(image.data)};
    return rows_.emplace(key, std::move(touched)).first->second;
}

void Workspace::fenced_by(const Lock& lock) {
    const locks::Held& held = locks::held(lock);
    if (&store::unmeasured(held.service().store()) != &store::unmeasured(world_.coordinator.store())) {
        throw InvalidError("the lock '" + lock.name() +
                           "' is kept in another store object than this application's; take it from "
                           "Application::locks()");
    }
    lock.check();
    RowRead condition = held.condition();
    fences_.insert_or_assign(condition.key, std::move(condition));
}

void Workspace::check_fences() const {
    std::vector<store::Key> keys;
    for (const auto& [key, condition] : fences_) keys.push_back(key);
    if (keys.empty()) return;
    const std::vector<std::optional<store::Item>> items = world_.coordinator.store().read(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const locks::Holder holder = locks::decode_holder(keys[i], items[i]);
        if (holder.revision() == fences_.at(keys[i]).rev) continue;
        throw LeaseLostError("the lock '" + keys[i].partition + "' was lost: it is at fence " +
                             std::to_string(holder.fence) + " now; nothing was written");
    }
}

Builds& Workspace::builds_of(std::string_view follower) {
    const auto known = builds_.find(follower);
    if (known != builds_.end()) return known->second;
    Builds builds = decode_builds(follower, touch(builds_key(follower)).data);
    world_.row_tables.builds().learn(follower, builds.live.number);
    return builds_.emplace(follower, std::move(builds)).first->second;
}

const RowTable& Workspace::build_of(const RowTable& table, const RowKey* key) {
    if (table.kept_by.empty()) return table;
    const bool is_kept = keeping_ != nullptr && keeping_->follower == table.kept_by;
    if (!builds_.contains(table.kept_by) && reservation_ == nullptr) {
        SettledReader::Ahead ahead{.keys = {builds_key(table.kept_by)}, .streams = {}};
        const std::int64_t likely = is_kept ? keeping_->number : world_.row_tables.builds().live(table.kept_by);
        if (key != nullptr) ahead.keys.push_back(stored_key(world_.row_tables.of_build(table, likely), *key));
        reader_.read_ahead(std::move(ahead));
    }
    Builds& builds = builds_of(table.kept_by);
    if (!is_kept) return world_.row_tables.of_build(table, builds.live.number);
    if (builds.written_by(*keeping_) == nullptr) throw_replaced(*keeping_, builds);
    return world_.row_tables.of_build(table, keeping_->number);
}

const RowTable& Workspace::written_build_of(const RowTable& table, const RowKey& key) {
    const bool is_kept = keeping_ != nullptr && keeping_->follower == table.kept_by;
    if (!is_kept && keeping_ != nullptr && keeping_->number > 1) throw_not_kept(table, *keeping_);
    if (table.kept_by.empty()) return table;
    if (!is_kept) throw_kept(table);
    const RowTable& written = build_of(table, &key);
    Builds& builds = builds_of(table.kept_by);
    std::vector<BuildTable>& tables = builds.written_by(*keeping_)->tables;
    BuildTable name{.name = std::string{table.type.name}, .sorted = table.sorted};
    if (std::ranges::find(tables, name) == tables.end()) {  // who empties the build one day has to know
        tables.push_back(std::move(name));
        set_row(builds_key(table.kept_by), json::encode(builds));
    }
    return written;
}

StoredPage Workspace::paged(const RowTable& table, const PageOptions& options,
                            const std::function<StoredPage(const RowTable&, const PageOptions&)>& read) {
    if (table.kept_by.empty()) return read(table, options);
    const RowTable& now = build_of(table);
    const PageOfBuild page{options};
    const bool is_kept = keeping_ != nullptr && keeping_->follower == table.kept_by;
    const Builds& builds = builds_of(table.kept_by);
    const std::int64_t current = is_kept ? keeping_->number : builds.live.number;
    const std::int64_t number = page.number.value_or(current);
    if (number != current && !builds.is_whole(number)) throw_list_is_gone(table);
    return PageOfBuild::of(read(number == current ? now : world_.row_tables.of_build(table, number), page.page),
                           number);
}

std::optional<std::string> Workspace::read(const RowTable& table, const RowKey& key) {
    const store::Key stored = stored_key(build_of(table, &key), key);
    check_keeper(stored, false);
    return touch(stored).data;
}

void Workspace::write(const RowTable& of, const RowKey& key, std::optional<std::string> data) {
    const RowTable& table = written_build_of(of, key);
    const store::Key stored = stored_key(table, key);
    check_keeper(stored, true);
    world_.row_tables.check_writer(table, until_);
    set_row(stored, std::move(data));
    note_indexed(table, stored);
}

void Workspace::insert(const RowTable& table, const RowKey& key, std::string data) {
    world_.row_tables.ensure(table);
    const store::Key stored = stored_key(table, key);
    if (reservation_ == nullptr) rows_.try_emplace(stored);
    set_row(stored, std::move(data));
}

void Workspace::note_indexed(const RowTable& table, const store::Key& key) {
    if (table.indexes.fields.empty()) return;
    if (indexed_.try_emplace(key, Indexed{.table = &table}).second) entries_at_most_ += 2 * table.indexes.fields.size();
    unfollowed_.insert(key);
}

StoredPage Workspace::range(const RowTable& of, const RowRange& range, const PageOptions& with) {
    return paged(of, with, [&](const RowTable& table, const PageOptions& options) {
        const PageOfRange page{stored_range(table, range), options};
        RangeOfRows found = this->range(page.query(), page.enough());
        return page.page(std::move(found.rows), std::move(found.stopped_at));
    });
}

void Workspace::reindex(const RowTable& table, const std::vector<StoredRow>& rows) {
    std::vector<store::Key> keys;
    for (const StoredRow& row : rows) keys.push_back(stored_key(table, row.key));
    read_ahead(keys);
    for (const store::Key& key : keys) {
        touch(key);
        note_indexed(table, key);
        indexed_.at(key).anew = true;
    }
}

void Workspace::erase_stale(const RowTable& table, std::size_t index, const std::vector<StoredRow>& entries) {
    std::vector<store::Key> keys = rows_named_by(table, entries);
    for (const StoredRow& entry : entries) keys.push_back(stored_key(index_rows, entry.key));
    read_ahead(std::move(keys));
    std::vector<StoredRow> stale;
    for (const StoredRow& entry : entries) {
        const store::Key key = stored_key(index_rows, entry.key);
        const std::optional<std::string> data = touch(key).data;
        if (!data) continue;
        const store::Key row = stored_key(table, decode_entry(key, *data));
        if (entries_left_by(table, row, touch(row).data)[index] != key) stale.push_back(entry);
    }
    erase_entries(stale);
}

void Workspace::erase_entries(const std::vector<StoredRow>& entries) {
    std::vector<store::Key> keys;
    for (const StoredRow& entry : entries) keys.push_back(stored_key(index_rows, entry.key));
    read_ahead(keys);
    for (const store::Key& key : keys) {
        set_row(key, std::nullopt);
        entries_.try_emplace(key);
    }
}

std::size_t Workspace::entries_changed() const {
    return static_cast<std::size_t>(std::ranges::count_if(entries_, [&](const auto& entry) {
        const TouchedRow& touched = rows_.at(entry.first);
        return touched.data != touched.seen.data;
    }));
}

void Workspace::reject_not_unique(const RowTable& table, const store::Key& entry, const store::Key& row,
                                  const RowKey& other) {
    const std::string field = entry.partition.substr(table.type.name.size() + 1);
    transaction_.reject({.code = "not_unique",
                         .message = std::string{table.type.name} + "." + field + " '" + value_in(entry) +
                                    "' is that of the row " + store::to_string(stored_key(table, other)) + ", so " +
                                    store::to_string(row) + " cannot have it"});
}

void Workspace::keep_indexes(Uniques uniques) {
    if (rejection_) return;
    claim_entries();
    read_ahead({claimed_anew_.begin(), claimed_anew_.end()});
    for (const store::Key& key : claimed_anew_) follow_claims(key, entries_.at(key));
    unchecked_.merge(std::exchange(claimed_anew_, {}));
    if (uniques == Uniques::not_yet_checked) return;
    for (const store::Key& key : unchecked_) check_unique(key, entries_.at(key));
    unchecked_.clear();
}

void Workspace::claim_entries() {
    for (auto at = unfollowed_.begin(); at != unfollowed_.end(); at = unfollowed_.erase(at)) {
        const store::Key& key = *at;
        Indexed& row = indexed_.at(key);
        const TouchedRow& touched = rows_.at(key);
        if (!row.before) row.before = entries_left_by(*row.table, key, touched.seen.data);
        const Entries& before = *row.before;
        const Entries after = entries_of(*row.table, key, touched.data);
        const auto entry = [&](const store::Key& one) -> Entry& {
            claimed_anew_.insert(one);
            Entry& found = entries_[one];
            found.table = row.table;
            return found;
        };
        for (const store::Key& one : std::exchange(row.claimed, {})) entry(one).claimed_by.erase(key);
        for (const store::Key& one : std::exchange(row.left, {})) entry(one).left_by.erase(key);
        for (std::size_t i = 0; i < after.size(); ++i) {
            if (before[i] == after[i] && !row.anew) continue;
            const bool leaves = before[i] && before[i] != after[i];
            if (leaves && !planted(PlantedFault::an_entry_stays_when_its_row_changes)) {
                entry(*before[i]).left_by.insert(key);
                row.left.push_back(*before[i]);
            }
            if (!after[i]) continue;
            entry(*after[i]).claimed_by.insert(key);
            row.claimed.push_back(*after[i]);
        }
    }
}

void Workspace::follow_claims(const store::Key& key, const Entry& entry) {
    TouchedRow& touched = touch(key);
    const std::optional<std::string>& seen = touched.seen.data;
    touched.written = true;
    if (!entry.claimed_by.empty()) {
        touched.data = encode_entry(*entry.claimed_by.rbegin());
    } else if (seen && entry.left_by.contains(stored_key(*entry.table, decode_entry(key, *seen)))) {
        touched.data.reset();
    } else {
        touched.data = seen;
    }
}

void Workspace::check_unique(const store::Key& key, const Entry& entry) {
    if (entry.claimed_by.empty() || planted(PlantedFault::a_unique_value_is_given_twice)) return;
    const store::Key& first = *entry.claimed_by.begin();
    if (entry.claimed_by.size() > 1)
        reject_not_unique(*entry.table, key, *std::next(entry.claimed_by.begin()), row_key(first));
    const TouchedRow& touched = touch(key);
    if (!touched.seen.data || touched.data == touched.seen.data) return;
    const RowKey owner = decode_entry(key, *touched.seen.data);
    const store::Key other = stored_key(*entry.table, owner);
    const Entries others = entries_left_by(*entry.table, other, touch(other).data);
    if (std::ranges::find(others, std::optional{key}) != others.end())
        reject_not_unique(*entry.table, key, first, owner);
}

std::optional<StoredRow> Workspace::row_of(const RowTable& table, const IndexRange& range, const store::Key& key) {
    check_keeper(key, false);
    return row_in(range, table, key, touch(key).data);
}

std::optional<StoredRow> Workspace::find(const RowTable& of, const IndexRange& range) {
    const RowTable& table = build_of(of);
    world_.row_tables.indexes().check_query(table, range.index, until_);
    keep_indexes(Uniques::not_yet_checked);
    const store::Key entry = entry_of_unique(table, range.index, range.first);
    const std::optional<std::string> data = touch(entry).data;
    if (!data) return std::nullopt;
    return row_of(table, range, stored_key(table, decode_entry(entry, *data)));
}

StoredPage Workspace::indexed(const RowTable& of, const IndexRange& range, const PageOptions& with) {
    return paged(of, with,
                 [&](const RowTable& table, const PageOptions& options) { return indexed_in(table, range, options); });
}

StoredPage Workspace::indexed_in(const RowTable& table, const IndexRange& range, const PageOptions& options) {
    world_.row_tables.indexes().check_query(table, range.index, until_);
    keep_indexes(Uniques::not_yet_checked);
    const PageOfRange page{query_of(table, range), options};
    RangeOfRows found = this->range(page.query(), page.enough());
    StoredPage entries = page.page(std::move(found.rows), std::move(found.stopped_at));
    const std::vector<store::Key> keys = rows_named_by(table, entries.rows);
    read_ahead(keys);
    StoredPage rows{.rows = {}, .next = std::move(entries.next)};
    for (const store::Key& key : keys) {
        if (std::optional<StoredRow> row = row_of(table, range, key)) rows.rows.push_back(*std::move(row));
    }
    return rows;
}

void Workspace::set_row(const store::Key& key, std::optional<std::string> data) {
    TouchedRow& touched = touch(key);
    ++changes_;
    touched.data = std::move(data);
    touched.written = true;
}

std::size_t Workspace::refold(const AggregateType& type, std::string_view id) {
    std::vector<const AggregateProjection*> keepers;
    for (const AggregateProjection* one : world_.projections.of(type)) {
        if (one->own) keepers.push_back(one);
    }
    if (keepers.empty()) {
        throw ConfigError("no projection of " + std::string{type.named.cpp_name} +
                          " keeps rows for one aggregate alone, and rows that several write cannot be made anew from "
                          "the events of one; where each row has one aggregate, say so in the projection: using "
                          "OwnRows = ...");
    }
    refolding_ = true;
    const Touched& touched = touch(type, id);
    std::vector<store::Key> before = own_rows(type, id);
    for (const AggregateProjection* keeper : keepers) {
        if (!keeper->own->sorted) continue;
        ensure(*keeper->own);
        const store::Query all{.table = std::string{keeper->own->type.name}, .partition = touched.id};
        for (const StoredRow& row : range(all, Reader::no_limit).rows)
            before.push_back(stored_key(*keeper->own, row.key));
    }
    reader_.read_ahead({.keys = before, .streams = {}});
    for (const store::Key& key : before) {
        const RowTable& table = *world_.projections.keeper_of(key.table)->own;
        world_.row_tables.check_writer(table, until_);
        set_row(key, std::nullopt);
        note_indexed(table, key);
    }

    const StreamRead stream =
        world_.coordinator.reader().stream(stream_name(type, id), 1, std::max<Version>(touched.seen.head, 1));
    for (const StreamRead::One& slot : stream.slots) {
        for (const RecordedEvent& recorded :
             events::decode_payload(stream_name(type, id), slot.version, slot.content)) {
            type.each_event(recorded, [&](const void* event) {
                for (const AggregateProjection* keeper : keepers) run(*keeper, projected(recorded, event));
            });
        }
    }
    return static_cast<std::size_t>(
        std::ranges::count_if(rows_, [](const auto& row) { return row.second.data != row.second.seen.data; }));
}

Workspace::RangeOfRows Workspace::range(const store::Query& whole, std::size_t limit) {
    check_keeper({whole.table, whole.partition}, false);
    Reader::FoundRange found = reader_.range(whole, limit);
    const store::Query query = up_to(whole, found.stopped_at);
    RangeRead& range = ranges_.emplace_back(RangeRead{.query = query, .found = {}});
    std::map<store::Key, std::string> rows;
    for (Reader::FoundRow& row : found.rows) {
        VARVE_ASSERT(row.image.rev, "a row that is found in a range has a revision");
        range.found.emplace_back(row.key, *row.image.rev);
        if (row.image.data) rows.emplace(std::move(row.key), std::move(*row.image.data));
    }
    const auto in_range = [&](const store::Key& key) {
        return key.table == query.table && key.partition == query.partition &&
               (query.first.index() == 0 || key.sort >= query.first) &&
               (query.last.index() == 0 || key.sort <= query.last);
    };
    for (const auto& [key, touched] : rows_) {
        if (!touched.written || !in_range(key)) continue;
        rows.erase(key);
        if (touched.data) rows.emplace(key, *touched.data);
    }
    RangeOfRows read{{}, std::move(found.stopped_at)};
    for (auto& [key, data] : rows) read.rows.push_back({row_key(key), std::move(data)});
    if (query.descending) std::ranges::reverse(read.rows);
    return read;
}

std::span<const Decided> Workspace::effects_of(const Touched& touched) const {
    return &touched == first_ ? std::span<const Decided>{effects_} : std::span<const Decided>{};
}

std::optional<Receipt::Written> Workspace::effects_slot(std::size_t command) const {
    const auto by_it = [&](const Decided& one) { return one.command == command; };
    if (std::ranges::none_of(effects_, by_it)) return std::nullopt;
    if (first_ == nullptr) return Receipt::Written{{}, 0};
    return Receipt::Written{stream_name(*first_->type, first_->id), first_->seen.head + 1};
}

store::Item Workspace::payload(std::span<const Decided> events, std::span<const Decided> effects) const {
    std::vector<events::CommandEvents> commands;
    const auto take = [](std::span<const Decided>& from, std::size_t command, std::vector<EventData>& to) {
        for (; !from.empty() && from.front().command == command; from = from.subspan(1))
            to.push_back(from.front().event);
    };
    for (std::size_t i = 0; i < commands_.size(); ++i) {
        events::CommandEvents one{.events = {}, .metadata = commands_[i]};
        take(events, i, one.events);
        take(effects, i, one.effects);
        if (!one.events.empty() || !one.effects.empty()) commands.push_back(std::move(one));
    }
    return events::encode_payload(commands, now_);
}

Plan Workspace::plan() const {
    Plan plan;
    if (reservation_ != nullptr) {
        for (const auto& [stream, slot] : reservation_->streams()) {
            HeldSlot& held = plan.held.emplace_back(slot);
            const auto touched = aggregates_.find(stream);
            if (touched != aggregates_.end() && !touched->second.events.empty())
                held.payload = payload(touched->second.events, effects_of(touched->second));
        }
    } else {
        for (const auto& [stream, touched] : aggregates_) {
            store::Key next = slot_key(stream, touched.seen.head + 1);
            if (touched.events.empty()) {
                plan.heads_read.push_back({std::move(next)});
            } else {
                plan.slots.push_back(
                    {std::move(next), touched.seen.next.epoch, payload(touched.events, effects_of(touched))});
            }
        }
    }
    for (const Once& one : once_) {
        plan.slots.push_back({id_slot_key(commands_[one.command].command_id), one.epoch,
                              id_slot_payload(one.fingerprint, written_by(one.command))});
    }
    const bool held = reservation_ != nullptr;
    std::set<store::Key> rows_written;
    for (const auto& [key, touched] : rows_) {
        const bool changes = touched.written && touched.data != touched.seen.data;
        if (changes) {
            plan.rows.push_back({.key = key, .seen = touched.seen, .after = touched.data, .held = held});
            rows_written.insert(key);
        } else if (!held) {
            plan.rows_read.push_back({key, touched.seen.rev});
        }
    }
    if (held) {
        for (const auto& [key, seen] : reservation_->rows()) {
            if (!rows_written.contains(key)) plan.rows_held.push_back({key, seen});
        }
    }
    for (const auto& [key, condition] : fences_) {
        if (!planted(PlantedFault::a_command_forgets_the_lock_that_it_is_fenced_by))
            plan.rows_read.push_back(condition);
    }
    plan.ranges_read = ranges_;
    if (first_ == nullptr && !effects_.empty()) plan.on_primary = payload({}, effects_);
    if (plan.writes() > 1) plan.finalised = settling();
    return plan;
}

std::set<std::string> Workspace::lines(bool all) const {
    std::set<std::string> names;
    for (const auto& [stream, touched] : aggregates_) {
        if (all || !touched.events.empty()) names.insert(stream);
    }
    for (const auto& [key, touched] : rows_) {
        if (all || touched.written) names.insert(store::to_string(key));
    }
    return names;
}

Plan Workspace::reads() const {
    Plan plan;
    for (const auto& [stream, touched] : aggregates_) {
        // What is held has not moved as long as the reservation is alive, which its owner looks at.
        if (reservation_ == nullptr) plan.heads_read.push_back({slot_key(stream, touched.seen.head + 1)});
    }
    for (const auto& [key, touched] : rows_) {
        if (reservation_ == nullptr) plan.rows_read.push_back({key, touched.seen.rev});
    }
    // What fails may fail since it was done before.
    for (const Once& one : once_) plan.heads_read.push_back({id_slot_key(commands_[one.command].command_id)});
    for (const auto& [key, condition] : fences_) plan.rows_read.push_back(condition);
    plan.ranges_read = ranges_;
    return plan;
}

std::function<void(const store::Key&)> Workspace::settling() const {
    struct Made {
        const AggregateType* type;
        aggregates::Folded seen;
        aggregates::Repository::NewState written;
    };
    std::map<std::string, Made> made;
    for (const auto& [stream, touched] : aggregates_) {
        if (!touched.events.empty()) made.emplace(stream, Made{touched.type, touched.seen, touched.written(true)});
    }
    return [&repository = world_.repository, made = std::move(made)](const store::Key& slot) {
        const auto found = made.find(slot.partition);
        if (found == made.end()) return;
        const Made& one = found->second;
        repository.remember(*one.type, slot.partition, one.seen, one.written);
    };
}

aggregates::Repository::NewState Touched::written(bool settled) const {
    std::size_t event_bytes = 0;
    for (const Decided& one : events) event_bytes += one.event.data.size();
    return {.state = own, .event_bytes = event_bytes, .settled = settled, .rows = nullptr};
}

std::vector<Receipt::Written> Workspace::written_by(std::size_t command) const {
    std::vector<Receipt::Written> written;
    for (const auto& [stream, touched] : aggregates_) {
        const auto by_it = [&](const Decided& one) { return one.command == command; };
        if (std::ranges::any_of(touched.events, by_it)) written.push_back({stream, touched.seen.head + 1});
    }
    return written;
}

bool Workspace::asked_for_all() const {
    const bool trusts_ids = !once_.empty() && ask_ == aggregates::Repository::Ask::last_known;
    return !trusts_ids && std::ranges::all_of(aggregates_, [](const auto& one) { return one.second.seen.asked; }) &&
           std::ranges::all_of(rows_, [](const auto& row) { return row.second.asked; });
}

void Workspace::remember(const Commit& commit) const {
    for (const auto& [stream, touched] : aggregates_) {
        if (touched.events.empty()) continue;
        // The other slots of the protocol are pending until somebody finalises them (state_cache.h).
        const bool in_place = commit.path == Path::single || commit.path == Path::native;
        const bool settled = in_place || (commit.path == Path::protocol && commit.primary.partition == stream);
        aggregates::Repository::NewState written = touched.written(settled);
        // By the protocol they are only intended until somebody finalises them.
        if (in_place) written.rows = own_rows_after(touched, commit);
        world_.repository.remember(*touched.type, stream, touched.seen, std::move(written));
    }
}

std::shared_ptr<const aggregates::KnownRows> Workspace::own_rows_after(const Touched& touched,
                                                                       const Commit& commit) const noexcept try {
    aggregates::KnownRows rows;
    for (store::Key& key : own_rows(*touched.type, touched.id)) {
        const auto found = rows_.find(key);
        if (found == rows_.end()) {
            if (const Image* known = known_row(key)) rows.push_back({std::move(key), *known});
            continue;
        }
        Image image = found->second.seen;
        if (found->second.data != image.data) {
            if (!found->second.data) continue;
            image.data = found->second.data;
            image.rev = commit.tx;
            image.expires.reset();
        }
        rows.push_back({std::move(key), std::move(image)});
    }
    return rows.empty() ? nullptr : std::make_shared<const aggregates::KnownRows>(std::move(rows));
} catch (...) {
    return nullptr;
}

}  // namespace varve::detail
