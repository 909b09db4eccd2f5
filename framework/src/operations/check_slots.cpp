#include "commands/command_id.h"
#include "events/stored_slot.h"
#include "operations/check_run.h"
#include "transactions/in_place.h"
#include "transactions/in_turn.h"
#include "transactions/row.h"

#include <varve/commands/outcome.h>
#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr std::size_t expected_max = 500;  // looked at together

bool is_slot(const store::Key& key) {
    return key.table == events_table().name;
}

bool is_copied(const Committed& primary, std::size_t index) {
    const std::string prefix = copied_attribute(index, "");
    const auto copied = primary.payload.lower_bound(prefix);
    return copied != primary.payload.end() && copied->first.starts_with(prefix);
}

std::string described(const Slot& slot, bool is_there) {
    if (const auto* committed = std::get_if<Committed>(&slot)) return "holds what " + committed->write_id + " wrote";
    if (const auto* pending = std::get_if<Pending>(&slot)) return "is claimed by " + pending->claim.tx;
    if (std::holds_alternative<Part>(slot)) return "is a part of a list of participants";
    return is_there ? "is void" : "is not there";
}

/// Goes through the slots of all streams.
class Slots {
  public:
    explicit Slots(CheckRun& run) : run_(run), claims_(run) {}

    void look_at(std::vector<store::Record>& page) {
        committed_.clear();
        for (store::Record& record : page) look_at(record);
        look_for_predecessors();
        look_for_expected();
        claims_.judge();
    }

  private:
    /// What a committed slot says of another item.
    struct Expected {
        store::Key item;
        store::Key said_by;
        std::string tx;
        const char* rule;
        bool is_done = false;
    };

    void look_at(store::Record& record) {
        ++run_.report.slots;
        const store::Key key = std::move(record.key);
        const auto look = [&] {
            const Version version = version_of(key);
            if (version < 1) throw CorruptionError("slots are counted from 1");
            Slot slot = decode_slot(key, std::move(record.item));
            if (version > 1 && !is_internal(key.partition)) later_.push_back(key);
            if (auto* committed = std::get_if<Committed>(&slot)) {
                if (!is_internal(key.partition)) committed_.insert(key);
                look_at(key, *committed);
            } else if (auto* pending = std::get_if<Pending>(&slot)) {
                claims_.meet({key, pending->claim, pending->reserved, pending->epoch});
                if (pending->reserved || is_internal(key.partition)) return;
                const Committed content{.write_id = pending->claim.tx, .payload = std::move(pending->payload)};
                static_cast<void>(events::decode_payload(key.partition, version, content));
                static_cast<void>(events::decode_effects(key.partition, version, content));
            }
        };
        readable(run_, key, look);
    }

    void look_at(const store::Key& key, const Committed& committed) {
        expect_participants(key, committed);
        if (key.partition.starts_with(detail::id_prefix)) look_at_receipt(key, committed);
        static_cast<void>(events::decode_effects(key.partition, version_of(key), committed));
        if (is_internal(key.partition)) return;
        const std::vector<RecordedEvent> events = events::decode_payload(key.partition, version_of(key), committed);
        run_.report.events += events.size();
        run_.report.streams += version_of(key) == 1 ? 1 : 0;
        const AggregateType* const type = run_.parts.repository.known(events::aggregate_of(key.partition));
        if (type == nullptr) return;
        for (const RecordedEvent& event : events) try_to_read(*type, event);
    }

    /// Upcasters are the user's, and throw what they like.
    static void try_to_read(const AggregateType& type, const RecordedEvent& event) try {
        type.each_event(event, [](const void*) {});
    } catch (const Error&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        throw CorruptionError("event '" + event.event.type + "' cannot be read: " + error.what());
    }

    void expect_participants(const store::Key& key, const Committed& committed) {
        if (committed.participants.empty() && committed.continued == 0) return;
        const auto all = participants_of(run_, key, committed);
        if (!all) return;
        const bool is_own = key.partition == transaction_stream(committed.write_id);
        for (std::size_t i = 0; i < all->size(); ++i) {
            // What was reserved in vain becomes void, and then anybody's.
            if (is_slot((*all)[i]) && is_own && !is_copied(committed, i)) continue;
            expect({(*all)[i], key, committed.write_id, "lost-participant", committed.done});
        }
    }

    void look_at_receipt(const store::Key& key, const Committed& committed) {
        for (Receipt::Written& one : detail::written_by_command(key, committed))
            expect({slot_key(std::move(one.stream), one.version), key, committed.write_id, "receipt"});
    }

    void expect(Expected expected) {
        expected_.push_back(std::move(expected));
        if (expected_.size() >= expected_max) look_for_expected();
    }

    /// They were committed before the slots that say so were, and stay their transactions' own.
    void look_for_expected() {
        const std::vector<Expected> expected = std::exchange(expected_, {});
        std::vector<store::Key> keys;
        std::vector<const Expected*> of;
        for (const Expected& one : expected) {
            if (run_.may_be(one.item)) {
                keys.push_back(one.item);
                of.push_back(&one);
            } else {
                lost(one,
                     "can be nowhere: no table has such a key, or nothing in the table 'varve' speaks of its table");
            }
        }
        read_in_turn(run_.store, keys, [&](std::size_t i, std::optional<store::Item> item) {
            try {
                if (is_slot(keys[i])) {
                    look_for_slot(*of[i], std::move(item));
                } else {
                    look_for_row(*of[i], item);
                }
            } catch (const CorruptionError&) {  // found where it is met
            }
        });
    }

    void look_for_slot(const Expected& one, std::optional<store::Item> item) {
        const bool is_there = item.has_value();
        const Slot slot = decode_slot(one.item, std::move(item));
        if (const auto* committed = std::get_if<Committed>(&slot); committed && committed->write_id == one.tx) return;
        if (const auto* pending = std::get_if<Pending>(&slot); pending && pending->claim.tx == one.tx) {
            if (one.is_done) lost(one, "is still claimed by it, and it is marked as done");
            return;
        }
        lost(one, described(slot, is_there));
    }

    void look_for_row(const Expected& one, const std::optional<store::Item>& item) {
        if (item) {
            const std::optional<Claim> claim = claim_on(one.item, *item);
            if (one.is_done && claim && claim->tx == one.tx)
                lost(one, "is still claimed by it, and it is marked as done");
            return;  // it may have been written by others since
        }
        try {
            check_is_there(one.item, item, one.tx, run_.parts.options.runtime.clock.get().now(),
                           run_.parts.coordinator.options().retention);
        } catch (const CorruptionError&) {
            lost(one, "is not there, and has left no tombstone");
        }
    }

    void lost(const Expected& one, const std::string& what) {
        if (std::string_view{one.rule} == "receipt") {
            run_.find(one.rule, one.said_by,
                      "the command has written " + store::to_string(one.item) + " as " + one.tx + ", and that " + what);
        } else {
            run_.find(one.rule, one.item,
                      "transaction " + one.tx + " has committed at " + store::to_string(one.said_by) +
                          " and wrote this item, and it " + what);
        }
    }

    /// Nobody writes a slot, or fences it, who has not read the one before it as committed.
    void look_for_predecessors() {
        std::vector<store::Key> keys;
        for (store::Key& key : std::exchange(later_, {})) {
            key.sort = version_of(key) - 1;
            if (!committed_.contains(key)) keys.push_back(std::move(key));
        }
        read_in_turn(run_.store, keys, [&](std::size_t i, std::optional<store::Item> item) {
            try {
                const bool is_there = item.has_value();
                const Slot slot = decode_slot(keys[i], std::move(item));
                if (std::holds_alternative<Committed>(slot)) return;
                run_.find("hole", keys[i],
                          "the slot after it is there, which nobody writes before this one is committed, and it " +
                              described(slot, is_there));
            } catch (const CorruptionError&) {  // found where it is met
            }
        });
    }

    CheckRun& run_;
    Claims claims_;
    std::set<store::Key> committed_;  // of this page
    std::vector<store::Key> later_;   // slots of this page that have one before them
    std::vector<Expected> expected_;
};

}  // namespace

void check_slots(CheckRun& run) {
    Slots slots{run};
    run.each_page(events_table().name, [&](std::vector<store::Record>& page) { slots.look_at(page); });
}

}  // namespace varve::operations
