#include "protocol/following.h"

#include "commands/deliverer.h"
#include "events/stored_slot.h"
#include "protocol/clerks.h"
#include "protocol/domain.h"
#include "transactions/slot.h"

#include <varve/commands/delivery.h>
#include <varve/events/event_store.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <variant>

namespace varve::protocol {
namespace {

std::int64_t number_of(const Deposited& e) {
    return e.operation;
}
std::int64_t number_of(const Withdrawn& e) {
    return e.operation;
}
std::int64_t number_of(const Appended& e) {
    return e.value;
}
std::int64_t number_of(const Stamped& e) {
    return e.operation;
}
std::int64_t number_of(const Counted& e) {
    return e.number;
}
template <class OfAClerk>
std::int64_t number_of(const OfAClerk& e) {
    return e.operation;
}

void fold_in(Fold& fold, Version version, std::size_t index, std::int64_t number) {
    ++fold.events;
    fold.version = version;
    auto digest = static_cast<std::uint64_t>(fold.digest);
    for (const std::uint64_t value :
         {static_cast<std::uint64_t>(version), static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(number)}) {
        digest = (digest ^ value) * 1099511628211ull;
    }
    fold.digest = static_cast<std::int64_t>(digest);
}

/// A row's key of an event; its places sort as text.
std::string place(Version version, std::size_t index) {
    const std::string text = std::to_string(version);
    return std::string(8 - std::min<std::size_t>(text.size(), 8), '0') + text + "/" + std::to_string(index);
}

/// What a broken follower cannot take.
void fail_at(std::int64_t number, bool is_broken) {
    if (is_broken && number % 11 == 3) throw std::runtime_error("this one is poison");
}

struct ProjectFolds {
    bool is_broken = false;

    template <class Event>
    void operator()(const Event& e, ProjectionContext& context) const {
        fail_at(number_of(e), is_broken);
        for (const std::string_view key : {context.aggregate_id(), all_events}) {
            context.rows<Fold>().update(
                key, [&](Fold& fold) { fold_in(fold, context.version(), context.index(), number_of(e)); });
        }
    }
};

struct ProjectSightings {
    bool is_broken = false;

    template <class Event>
    void operator()(const Event& e, ProjectionContext& context) const {
        fail_at(number_of(e), is_broken);
        const RowKey key{std::string{context.aggregate_id()}, place(context.version(), context.index())};
        context.rows<Sighting>().update(key, [&](Sighting& sighting) {
            ++sighting.times;
            sighting.position = context.position();
        });
    }
};

template <class A>
std::int64_t number_in(const RecordedEvent& event) {
    return std::visit([](const auto& e) { return number_of(e); },
                      EventVariant<typename A::Event>::decode(event).front());
}

std::int64_t number_in(const RecordedEvent& event) {
    if (event.event.type == event_name<Announce>()) return json::decode<Announce>(event.event.data).value().operation;
    const std::string_view aggregate = events::aggregate_of(event.stream);
    if (aggregate == Account::name) return number_in<Account>(event);
    if (aggregate == List::name) return number_in<List>(event);
    if (aggregate == Clerk::name) return number_in<Clerk>(event);
    if (aggregate == Tally::name) return number_in<Tally>(event);
    return number_in<Register>(event);
}

std::string id_of(const std::string& stream) {
    return stream.substr(stream.find('-') + 1);
}

Delivery delivery(const RecordedEvent& event) {
    return {event.stream, event.version, event.index, event.position, event.event.data};
}

std::string to_string(const Delivery& event) {
    return event.stream + "/" + std::to_string(event.version) + "/" + std::to_string(event.index);
}

using Places = std::map<store::Key, store::Position>;

struct Run {
    std::string stream;
    Version first = 0;
    Version last = 0;
};

/// Where the log has each slot.
Places places_in_log(Ledger& ledger, std::vector<std::string>& found) {
    Places places;
    std::vector<store::Record> pieces = ledger.contents({"feed_log"});
    std::ranges::sort(pieces, {}, &store::Record::key);
    store::Position next = 1;
    for (const store::Record& piece : pieces) {
        if (std::get<std::int64_t>(piece.key.sort) != static_cast<std::int64_t>(next))
            found.push_back("F3: the log has " + store::to_string(piece.key) + " where " + std::to_string(next) +
                            " is to come");
        const auto runs = json::decode<std::vector<Run>>(*store::text(piece.item, "slots"));
        if (!runs) {
            found.push_back("the log has " + store::to_string(piece.key) + ": " + runs.error().message);
            continue;
        }
        for (const Run& run : *runs) {
            for (Version version = run.first; version <= run.last; ++version) {
                const store::Key slot = transactions::slot_key(run.stream, version);
                if (!places.emplace(slot, next++).second)
                    found.push_back("F1: the log has " + store::to_string(slot) + " twice");
            }
        }
    }
    return places;
}

enum class Content { events, effects };

/// What a slot holds of them.
std::vector<RecordedEvent> stored_in(const store::Key& key, const transactions::Committed& slot, Content content) {
    const Version version = transactions::version_of(key);
    if (content == Content::events) {
        return key.partition.front() == '$' ? std::vector<RecordedEvent>{}
                                            : events::decode_payload(key.partition, version, slot);
    }
    std::vector<RecordedEvent> effects;
    std::size_t index = 0;
    for (const Effect& one : events::decode_effects(key.partition, version, slot)) {
        const std::size_t at = index++;
        if (one.effect.type != event_name<Announce>()) continue;
        effects.push_back({.stream = key.partition,
                           .version = version,
                           .index = at,
                           .id = one.id,
                           .time = one.time,
                           .event = one.effect,
                           .metadata = one.metadata});
    }
    return effects;
}

/// What a store holds, in the order of their places, by its own account.
std::vector<RecordedEvent> stored_events(Ledger& ledger, Content content) {
    std::vector<RecordedEvent> found;
    store::Position after = 0;
    for (;;) {
        std::vector<store::Change> changes = ledger.changes("events", after, 1000);
        if (changes.empty()) return found;
        after = changes.back().position;
        for (store::Change& change : changes) {
            const store::Key& key = change.record.key;
            const transactions::Slot slot = transactions::decode_slot(key, std::move(change.record.item));
            const auto* committed = std::get_if<transactions::Committed>(&slot);
            if (committed == nullptr) continue;
            for (RecordedEvent& event : stored_in(key, *committed, content)) {
                event.position = change.position;
                found.push_back(std::move(event));
            }
        }
    }
}

void judge_order(const std::vector<RecordedEvent>& events, std::vector<std::string>& found) {
    std::map<std::string, Version> heads;
    for (const RecordedEvent& event : events) {
        Version& head = heads[event.stream];
        if (event.index == 0 && event.version != head + 1) {
            found.push_back("F2: " + to_string(delivery(event)) + " comes after version " + std::to_string(head));
        }
        head = event.version;
    }
}

template <class Row>
void judge_rows(Application& application, const std::map<RowKey, Row>& expected, const auto& describe,
                std::vector<std::string>& found) {
    std::map<RowKey, Row> rows;
    for (auto& row : application.rows<Row>().all()) rows.emplace(row.key, row.value);
    for (const auto& [key, row] : expected) {
        const auto is = rows.find(key);
        if (is != rows.end() && is->second == row) continue;
        found.push_back("projection: " + std::string{Row::table} + " " + key.partition + "/" + key.sort + " is " +
                        (is == rows.end() ? "missing" : describe(is->second)) + ", its events say " + describe(row));
    }
    for (const auto& [key, row] : rows) {
        if (!expected.contains(key)) {
            found.push_back("projection: " + std::string{Row::table} + " " + key.partition + "/" + key.sort + " is " +
                            describe(row) + ", and there is no such event");
        }
    }
}

void judge_folds(Application& application, const std::vector<RecordedEvent>& events, std::vector<std::string>& found) {
    std::map<RowKey, Fold> expected;
    for (const RecordedEvent& event : events) {
        const std::string_view aggregate = events::aggregate_of(event.stream);
        if (aggregate == Register::name || is_clerical(aggregate)) continue;
        for (const RowKey& key : {RowKey{id_of(event.stream)}, RowKey{all_events}})
            fold_in(expected[key], event.version, event.index, number_in(event));
    }
    const auto describe = [](const Fold& fold) {
        return std::to_string(fold.events) + " events to version " + std::to_string(fold.version) + " with digest " +
               std::to_string(fold.digest);
    };
    judge_rows(application, expected, describe, found);
}

void judge_sightings(Application& application, const std::vector<RecordedEvent>& events,
                     std::vector<std::string>& found) {
    std::map<RowKey, Sighting> expected;
    for (const RecordedEvent& event : events) {
        if (is_clerical(events::aggregate_of(event.stream))) continue;
        expected[{id_of(event.stream), place(event.version, event.index)}] = {1, event.position};
    }
    const auto describe = [](const Sighting& sighting) {
        return "seen " + std::to_string(sighting.times) + " times, at " + std::to_string(sighting.position);
    };
    judge_rows(application, expected, describe, found);
}

/// Whoever begins at the end may leave out the first ones.
void judge_deliveries(const std::string& name, const std::vector<Delivery>& deliveries,
                      const std::vector<Delivery>& expected, bool begins_at_the_end, std::vector<std::string>& found) {
    const std::string line = "subscription: " + name;
    std::optional<std::size_t> next;  // the first that it has not seen
    if (!begins_at_the_end) next = 0;
    for (const Delivery& one : deliveries) {
        const auto is = std::ranges::find(expected, one);
        if (is == expected.end()) {
            found.push_back(line + " was handed " + to_string(one) + " at " + std::to_string(one.position) +
                            ", and that is not there");
            continue;
        }
        const auto at = static_cast<std::size_t>(is - expected.begin());
        if (!next) next = at;
        if (at > *next) {
            found.push_back(line + " was handed " + to_string(one) + " before " + to_string(expected[*next]));
        }
        next = std::max(*next, at + 1);
    }
    if (next && *next < expected.size()) found.push_back(line + " was never handed " + to_string(expected[*next]));
}

}  // namespace

std::string name_of(Followed followed) {
    switch (followed) {
        case Followed::folds: return "folds";
        case Followed::sightings: return "sightings";
        case Followed::everything: return "everything";
        case Followed::deposits: return "deposits";
        case Followed::effects: return "effects";
    }
    return "";
}

detail::Consumer consumer(Followed followed, const Manner& manner, Deliveries& deliveries, const Runtime& runtime) {
    const std::string name = name_of(followed);
    if (followed == Followed::effects) {
        const auto take = [&delivered = deliveries[followed], manner, runtime](const varve::Delivery& one) {
            fail_at(number_in(one.effect), manner.is_broken);
            const bool is_busy = static_cast<double>(runtime.random.get().below(1000)) < manner.is_busy * 1000;
            if (is_busy) throw DeliverLater("it is busy");
            delivered.push_back(delivery(one.effect));
        };
        const DeliverOptions options{.attempts_max = std::numeric_limits<unsigned>::max(),
                                     .retry_max = std::chrono::seconds{1},
                                     .poll_interval = manner.options.poll_interval};
        return detail::consumer_of(name,
                                   std::make_shared<detail::Deliverer>(runtime, event_name<Announce>(), take, options));
    }
    if (followed == Followed::folds) {
        const auto projection = std::make_shared<const ProjectFolds>(ProjectFolds{manner.is_broken});
        return detail::consumer_of(
            name, {detail::shared_projection<Account>(projection), detail::shared_projection<List>(projection)},
            manner.options);
    }
    if (followed == Followed::sightings) {
        const auto projection = std::make_shared<const ProjectSightings>(ProjectSightings{manner.is_broken});
        return detail::consumer_of(
            name,
            {detail::shared_projection<Account>(projection), detail::shared_projection<List>(projection),
             detail::shared_projection<Register>(projection)},
            manner.options);
    }
    detail::Consumer consumer{.name = name, .filter = {}, .options = manner.options, .project = {}, .handle = {}};
    if (followed == Followed::deposits) {
        consumer.filter.types = {"Deposited"};
        consumer.start_at = StartAt::end;
    }
    consumer.handle = [&delivered = deliveries[followed],
                       is_broken = manner.is_broken](std::span<const RecordedEvent> events) {
        for (const RecordedEvent& event : events) fail_at(number_in(event), is_broken);
        for (const RecordedEvent& event : events) delivered.push_back(delivery(event));
    };
    return consumer;
}

void use_following_tables(Application& application) {
    static_cast<void>(application.rows<Fold>());
    static_cast<void>(application.rows<Sighting>());
}

std::vector<std::string> judge_following(Application& application, Ledger& ledger, const Deliveries& deliveries,
                                         const std::vector<Followed>& all, bool has_log) {
    std::vector<std::string> found;
    if (all.empty()) return found;
    std::vector<RecordedEvent> events = stored_events(ledger, Content::events);
    std::vector<RecordedEvent> effects = stored_events(ledger, Content::effects);
    if (has_log) {
        const Places places = places_in_log(ledger, found);
        for (std::vector<RecordedEvent>* all : {&events, &effects}) {
            for (RecordedEvent& event : *all) {
                const auto place = places.find(transactions::slot_key(event.stream, event.version));
                event.position = place == places.end() ? 0 : place->second;
                if (event.position == 0) found.push_back("F4: the log lacks " + to_string(delivery(event)));
            }
            std::ranges::stable_sort(*all, {}, &RecordedEvent::position);
        }
    }
    judge_order(events, found);
    for (const Followed followed : all) {
        if (followed == Followed::folds) {
            judge_folds(application, events, found);
        } else if (followed == Followed::sightings) {
            judge_sightings(application, events, found);
        } else {
            const bool deposits = followed == Followed::deposits;
            const bool is_delivery = followed == Followed::effects;
            struct Story {
                std::vector<Delivery> expected, seen;
            };
            std::map<std::string, Story> stories;  // of the whole feed, or by stream
            for (const RecordedEvent& event : is_delivery ? effects : events) {
                if (!deposits || event.event.type == "Deposited")
                    stories[is_delivery ? event.stream : ""].expected.push_back(delivery(event));
            }
            if (const auto seen = deliveries.find(followed); seen != deliveries.end()) {
                for (const Delivery& one : seen->second) stories[is_delivery ? one.stream : ""].seen.push_back(one);
            }
            for (const auto& [stream, story] : stories)
                judge_deliveries(name_of(followed), story.seen, story.expected, deposits, found);
        }
    }
    return found;
}

std::vector<std::string> judge_log(Ledger& ledger, const Record& record) {
    std::vector<std::string> found;
    std::set<std::string> acknowledged;
    for (const auto& [operation, command] : record.commands) {
        if (command.committed) acknowledged.insert(command.transaction);
    }
    const Places places = places_in_log(ledger, found);
    for (const store::Record& record : ledger.contents({"events"})) {
        const std::string* write_id = transactions::committed_by(record.item);
        if (write_id == nullptr || !acknowledged.contains(*write_id)) continue;
        if (!transactions::is_followed(record.key, record.item)) continue;
        if (!places.contains(record.key))
            found.push_back("F4: " + store::to_string(record.key) + " was acknowledged, and the log lacks it");
    }
    return found;
}

}  // namespace varve::protocol
