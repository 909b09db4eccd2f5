#include "../transactions/mutants.h"

#include <varve/commands/transaction.h>
#include <varve/core/error.h>
#include <varve/events/stored_slot.h>

#include <algorithm>
#include <utility>

namespace varve {

using namespace transactions;

Transaction::Transaction(const World& world, std::string tx, Time since, Reservation* reservation,
                         aggregates::Repository::Ask ask)
    : world_(world),
      reservation_(reservation),
      reader_(world.coordinator, tx, since, reservation),
      ask_(ask),
      tx_(std::move(tx)),
      now_(world.coordinator.runtime().clock.now()) {}

Transaction::Touched& Transaction::touch(const AggregateType& type, std::string_view id) {
    std::string stream = stream_name(type, id);
    const auto found = aggregates_.find(stream);
    if (found != aggregates_.end()) return found->second;
    std::optional<Version> held;
    if (reservation_ != nullptr) held = version_of(reservation_->hold(stream).key) - 1;
    Touched touched{.type = &type,
                    .id = std::string{id},
                    .seen = held ? world_.repository.load_at_head(type, stream, reader_, *held)
                                 : world_.repository.load(type, stream, reader_, ask_),
                    .own = nullptr,
                    .events = {}};
    return aggregates_.emplace(std::move(stream), std::move(touched)).first->second;
}

void Transaction::record(Touched& touched, EventData data, const void* event) {
    constexpr std::size_t json_around_bytes = 48;
    ++changes_;
    event_bytes_ += data.type.size() + data.data.size() + json_around_bytes;
    touched.events.push_back({commands_.size() - 1, std::move(data)});
    const DecidedEvent decided{
        .aggregate_id = touched.id, .version = touched.seen.head + 1, .time = now_, .event = event};
    const auto [first, last] = world_.projections.equal_range(touched.type->name);
    for (auto projection = first; projection != last; ++projection) projection->second(*this, decided);
}

Transaction::TouchedRow& Transaction::touch(const store::Key& key) {
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second;
    Image image = reservation_ != nullptr ? reservation_->hold(key) : reader_.rows({&key, 1}).front();
    TouchedRow touched{.seen = image, .written = false, .data = std::move(image.data)};
    return rows_.emplace(key, std::move(touched)).first->second;
}

void Transaction::fenced_by(const Lock& lock) {
    if (!world_.coordinator.is_on(lock.store())) {
        throw InvalidError("the lock '" + lock.name() +
                           "' is kept in another store object than this application's; take it from "
                           "Application::locks()");
    }
    lock.check();
    RowRead condition = lock.condition();
    fences_.insert_or_assign(condition.key, std::move(condition));
}

void Transaction::check_fences() const {
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

std::optional<std::string> Transaction::read_row(const store::Key& key) {
    return touch(key).data;
}

void Transaction::write_row(const store::Key& key, std::optional<std::string> data) {
    TouchedRow& touched = touch(key);
    ++changes_;
    touched.data = std::move(data);
    touched.written = true;
}

std::vector<Transaction::RowFound> Transaction::read_range(const store::Query& query) {
    std::map<store::Key, std::string> rows;
    RangeRead& range = ranges_.emplace_back(RangeRead{.query = query, .found = {}});
    for (Reader::FoundRow& row : reader_.range(query)) {
        range.found.emplace_back(row.key, row.image.rev.value());
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
    std::vector<RowFound> found;
    for (auto& [key, data] : rows) found.push_back({key, std::move(data)});
    if (query.descending) std::ranges::reverse(found);
    return found;
}

Plan Transaction::plan() const {
    Plan plan;
    const auto payload = [&](const Touched& touched) {
        std::vector<events::CommandEvents> commands;
        std::size_t last = commands_.size();
        for (const Decided& one : touched.events) {
            if (one.command != std::exchange(last, one.command)) commands.push_back({{}, commands_[one.command]});
            commands.back().events.push_back(one.event);
        }
        return events::encode_payload(commands, now_);
    };
    if (reservation_ != nullptr) {
        for (const auto& [stream, slot] : reservation_->streams()) {
            HeldSlot& held = plan.held.emplace_back(slot);
            const auto touched = aggregates_.find(stream);
            if (touched != aggregates_.end() && !touched->second.events.empty())
                held.payload = payload(touched->second);
        }
    } else {
        for (const auto& [stream, touched] : aggregates_) {
            store::Key next = slot_key(stream, touched.seen.head + 1);
            if (touched.events.empty()) {
                plan.heads_read.push_back({std::move(next)});
            } else {
                plan.slots.push_back({std::move(next), touched.seen.next.epoch, payload(touched)});
            }
        }
    }
    const bool held = reservation_ != nullptr;
    for (const auto& [key, touched] : rows_) {
        const bool changes = touched.written && touched.data != touched.seen.data;
        if (changes) {
            plan.rows.push_back({.key = key, .seen = touched.seen, .after = touched.data, .held = held});
        } else if (!held) {
            plan.rows_read.push_back({key, touched.seen.rev});
        }
    }
    if (held) {
        for (const auto& held_row : reservation_->rows()) {
            const auto is_it = [&](const RowWrite& row) { return row.key == held_row.first; };
            if (std::ranges::none_of(plan.rows, is_it)) plan.rows_held.push_back({held_row.first, held_row.second});
        }
    }
    for (const auto& [key, condition] : fences_) {
        if (!VARVE_MUTANT("a command forgets the lock that it is fenced by")) plan.rows_read.push_back(condition);
    }
    plan.ranges_read = ranges_;
    if (!effects_.empty()) plan.on_primary = events::encode_effects(effects_);
    if (plan.writes() > 1) plan.finalised = settling();
    return plan;
}

Plan Transaction::reads() const {
    Plan plan;
    for (const auto& [stream, touched] : aggregates_) {
        // What is held has not moved as long as the reservation is alive, which its owner looks at.
        if (reservation_ == nullptr) plan.heads_read.push_back({slot_key(stream, touched.seen.head + 1)});
    }
    for (const auto& [key, touched] : rows_) {
        if (reservation_ == nullptr) plan.rows_read.push_back({key, touched.seen.rev});
    }
    for (const auto& [key, condition] : fences_) plan.rows_read.push_back(condition);
    plan.ranges_read = ranges_;
    return plan;
}

std::function<void(const store::Key&)> Transaction::settling() const {
    struct Made {
        const AggregateType* type;
        aggregates::Folded seen;
        aggregates::Repository::Written written;
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

aggregates::Repository::Written Transaction::Touched::written(bool settled) const {
    std::size_t event_bytes = 0;
    for (const Decided& one : events) event_bytes += one.event.data.size();
    return {.state = own, .event_bytes = event_bytes, .settled = settled};
}

std::vector<Receipt::Written> Transaction::written_by(std::size_t command) const {
    std::vector<Receipt::Written> written;
    for (const auto& [stream, touched] : aggregates_) {
        const auto by_it = [&](const Decided& one) { return one.command == command; };
        if (std::ranges::any_of(touched.events, by_it)) written.push_back({stream, touched.seen.head + 1});
    }
    return written;
}

bool Transaction::asked_for_all() const {
    return std::ranges::all_of(aggregates_, [](const auto& one) { return one.second.seen.asked; });
}

void Transaction::remember(const Commit& commit) const {
    for (const auto& [stream, touched] : aggregates_) {
        if (touched.events.empty()) continue;
        // The other slots of the protocol are pending until somebody finalises them (state_cache.h).
        const bool at_once = commit.path == Path::single || commit.path == Path::native;
        const bool settled = at_once || (commit.path == Path::protocol && commit.primary.partition == stream);
        world_.repository.remember(*touched.type, stream, touched.seen, touched.written(settled));
    }
}

}  // namespace varve
