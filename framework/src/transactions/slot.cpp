#include "transactions/slot.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

namespace varve::transactions {
namespace {

constexpr const char* state_attribute = "state";
constexpr const char* epoch_attribute = "epoch";
constexpr const char* write_id_attribute = "write_id";
constexpr const char* participants_attribute = "participants";
constexpr const char* continued_attribute = "continued";
constexpr const char* done_attribute = "done";
constexpr const char* reservation_attribute = "reserved";

constexpr const char* void_state = "void";
constexpr const char* pending_state = "pending";
constexpr const char* committed_state = "committed";
constexpr const char* part_state = "part";

/// One entry of `participants`.
struct StoredParticipant {
    std::string table;
    std::string partition;
    std::optional<std::int64_t> version;
    std::optional<std::string> sort;
};

}  // namespace

std::string encode_participants(const std::vector<store::Key>& keys) {
    std::vector<StoredParticipant> participants;
    for (const store::Key& key : keys) {
        StoredParticipant& one = participants.emplace_back(StoredParticipant{key.table, key.partition, {}, {}});
        if (const auto* version = std::get_if<std::int64_t>(&key.sort)) one.version = *version;
        if (const auto* sort = std::get_if<std::string>(&key.sort)) one.sort = *sort;
    }
    return json::encode(participants);
}

std::vector<store::Key> decode_participants(const store::Key& key, const std::string& text) {
    const auto participants = json::decode<std::vector<StoredParticipant>>(text, {.require_all = true});
    if (!participants) {
        throw_damaged(key, "has an unreadable list of participants (" + participants.error().message + ")");
    }
    std::vector<store::Key> keys;
    for (const StoredParticipant& one : *participants) {
        const bool slot = one.table == events_table().name;
        const bool good = slot ? one.version && *one.version >= 1 && !one.sort : !(one.version && one.sort);
        if (one.table.empty() || one.partition.empty() || !good) {
            throw_damaged(key, "has a list of participants of which one is no item");
        }
        store::Key& participant = keys.emplace_back(store::Key{one.table, one.partition});
        if (one.version) participant.sort = *one.version;
        if (one.sort) participant.sort = *one.sort;
    }
    return keys;
}

namespace {

bool is_one(const store::Key& key, const store::Item& item, const char* attribute) {
    return integer_of(key, item, attribute, {1, 1}) != nullptr;
}

store::Item committed_item(const Committed& content) {
    VARVE_ASSERT(!content.write_id.empty(), "every committed slot has a write id");
    VARVE_ASSERT(content.continued == 0 || content.participants.empty(), "a list of participants has one place");
    VARVE_ASSERT(content.continued <= continued_max, "a list of participants is continued as far as it can be read");
    store::Item item = content.payload;
    item.insert_or_assign(state_attribute, committed_state);
    item.insert_or_assign(write_id_attribute, content.write_id);
    if (!content.participants.empty())
        item.insert_or_assign(participants_attribute, encode_participants(content.participants));
    if (content.continued > 0) item.insert_or_assign(continued_attribute, content.continued);
    return item;
}

store::Item void_item(Epoch epoch) {
    if (planted(PlantedFault::a_void_that_does_not_raise_the_epoch)) epoch = 1;
    return {{state_attribute, void_state}, {epoch_attribute, epoch}};
}

store::Condition pending_by(const std::string& tx) {
    if (planted(PlantedFault::a_slots_undo_and_finalise_do_not_check_the_transaction))
        return store::equals(state_attribute, pending_state);
    return store::equals(state_attribute, pending_state) && claimed_by(tx);
}

}  // namespace

const store::TableSchema& events_table() {
    static const store::TableSchema schema{.name = "events",
                                           .partition_attribute = "aggregateId",
                                           .sort_attribute = "version",
                                           .sort = store::SortType::integer};
    return schema;
}

store::Key slot_key(std::string stream, Version version) {
    return {events_table().name, std::move(stream), version};
}

Version version_of(const store::Key& slot) {
    const auto* version = std::get_if<std::int64_t>(&slot.sort);
    if (version == nullptr) throw_damaged(slot, "is no slot of a stream: it has no version");
    return *version;
}

ConflictDetails lost_at(const store::Key& key) {
    ConflictDetails details{.item = store::to_string(key)};
    if (key.table == events_table().name && std::holds_alternative<std::int64_t>(key.sort)) {
        details.stream = key.partition;
        details.expected = version_of(key) - 1;
    }
    return details;
}

bool is_followed(const store::Key& slot, const store::Item& payload) {
    const bool has_effects =
        payload.contains(effects_attribute) && !planted(PlantedFault::effects_beside_the_events_are_not_put_in_order);
    return slot.table == events_table().name && (!is_internal(slot.partition) || has_effects);
}

bool is_internal(std::string_view stream) {
    return stream.starts_with('$');
}

std::string transaction_stream(const std::string& tx) {
    return "$tx-" + tx;
}

Slot decode_slot(const store::Key& key, std::optional<store::Item> item) {
    if (!item) return Free{};
    const std::string* state = text_of(key, *item, state_attribute);
    if (state == nullptr) throw_damaged(key, "has no state");
    const std::int64_t* epoch = integer_of(key, *item, epoch_attribute, {0, epoch_max});
    const std::string* write_id = text_of(key, *item, write_id_attribute);
    const std::string* participants = text_of(key, *item, participants_attribute);
    std::optional<Claim> claim = claim_on(key, *item);
    if (claim.has_value() != (*state == pending_state)) {
        throw_damaged(key, claim ? "is '" + *state + "' and bears a claim" : "is pending without a claim");
    }
    if (write_id != nullptr && write_id->empty()) throw_damaged(key, "has an empty write_id");
    if (*state == void_state) {
        if (epoch == nullptr || *epoch < 1) throw_damaged(key, "is void without an epoch");
        return Free{*epoch};
    }
    if (*state == pending_state) {
        if (epoch == nullptr) throw_damaged(key, "is pending without an epoch");
        if (write_id == nullptr || *write_id != claim->tx) throw_damaged(key, "is pending under another write_id");
        Pending pending{.claim = std::move(*claim), .epoch = *epoch, .payload = std::move(*item)};
        pending.reserved = is_one(key, pending.payload, reservation_attribute);
        remove_claim(pending.payload);
        for (const char* name : {state_attribute, epoch_attribute, write_id_attribute, reservation_attribute})
            pending.payload.erase(name);
        return pending;
    }
    if (*state == committed_state) {
        if (write_id == nullptr) throw_damaged(key, "is committed without a write_id");
        Committed committed{.write_id = *write_id, .payload = std::move(*item)};
        if (participants != nullptr) committed.participants = decode_participants(key, *participants);
        if (const std::int64_t* continued =
                integer_of(key, committed.payload, continued_attribute, {1, continued_max})) {
            if (participants != nullptr) throw_damaged(key, "has participants and continues them");
            committed.continued = *continued;
        }
        committed.done = is_one(key, committed.payload, done_attribute);
        for (const char* name : {state_attribute, epoch_attribute, write_id_attribute, participants_attribute,
                                 continued_attribute, done_attribute}) {
            committed.payload.erase(name);
        }
        return committed;
    }
    if (*state == part_state) {
        if (write_id == nullptr || participants == nullptr)
            throw_damaged(key, "is a part without a write_id or participants");
        if (key.partition != transaction_stream(*write_id)) throw_damaged(key, "is a part of another transaction's");
        return Part{.write_id = *write_id, .participants = decode_participants(key, *participants)};
    }
    throw_damaged(key, "is in state '" + *state + "'");
}

const std::string* committed_by(const store::Item& slot) {
    const std::string* state = store::text(slot, state_attribute);
    return state != nullptr && *state == committed_state ? store::text(slot, write_id_attribute) : nullptr;
}

Free free_slot(const store::Key& key, const Slot& slot) {
    const auto* free = std::get_if<Free>(&slot);
    if (free == nullptr) throw_damaged(key, "is in a state that nobody expects there");
    return *free;
}

Pending pending_slot(const store::Key& key, Slot slot) {
    auto* pending = std::get_if<Pending>(&slot);
    if (pending == nullptr) throw_damaged(key, "bears a claim and is not pending");
    return std::move(*pending);
}

store::Condition free_at(Epoch epoch) {
    if (planted(PlantedFault::a_void_of_any_epoch_is_accepted)) return free_at_any_epoch();
    if (epoch == 0) return !store::item_exists();
    return store::equals(state_attribute, void_state) && store::equals(epoch_attribute, epoch);
}

store::Condition free_at_any_epoch() {
    return !store::item_exists() || store::equals(state_attribute, void_state);
}

store::Write prepare_slot(const store::Key& key, Epoch epoch, const Claim& claim, const store::Item& payload) {
    VARVE_ASSERT(!claim.tx.empty(), "every claim names its transaction");
    VARVE_ASSERT(version_of(key) >= 1, "a stream's slots are counted from 1");
    VARVE_ASSERT(key != claim.primary || epoch == claim.primary_epoch,
                 "a primary is prepared at the epoch that its claims expect");
    store::Item item = payload;
    item.insert_or_assign(state_attribute, pending_state);
    item.insert_or_assign(epoch_attribute, epoch);
    item.insert_or_assign(write_id_attribute, claim.tx);
    put_claim(item, claim);
    return {key, store::Put{std::move(item)}, free_at(epoch)};
}

store::Write write_part(const store::Key& key, const Part& part) {
    store::Item item{{state_attribute, part_state},
                     {write_id_attribute, part.write_id},
                     {participants_attribute, encode_participants(part.participants)}};
    return {key, store::Put{std::move(item)}, free_at(0)};
}

store::Write reserve_slot(const store::Key& key, Epoch epoch, const Claim& claim) {
    return prepare_slot(key, epoch, claim, {{reservation_attribute, std::int64_t{1}}});
}

store::Write renew_slot(const store::Key& key, const Claim& claim) {
    store::Item item;
    put_claim(item, claim);
    return {key, store::Update{.set = std::move(item), .remove = {}}, pending_by(claim.tx)};
}

store::Write commit_free_slot(const store::Key& key, Epoch epoch, const Committed& content) {
    return {key, store::Put{committed_item(content)}, free_at(epoch)};
}

store::Write commit_pending_slot(const store::Key& key, const Committed& content) {
    return {key, store::Put{committed_item(content)}, pending_by(content.write_id)};
}

store::Write finalise_slot(const store::Key& key, const std::string& tx) {
    store::Update update{.set = {{state_attribute, committed_state}}, .remove = claim_attributes()};
    update.remove.push_back(epoch_attribute);
    return {key, std::move(update), pending_by(tx)};
}

store::Write undo_slot(const store::Key& key, const std::string& tx, Epoch epoch) {
    VARVE_ASSERT(epoch >= 0 && epoch < epoch_max, "an epoch has room to grow");
    // Its own epoch, too: the transaction may have been cleared here and have come back at a higher one meanwhile.
    return {key, store::Put{void_item(epoch + 1)}, pending_by(tx) && store::equals(epoch_attribute, epoch)};
}

store::Write fence_free_slot(const store::Key& key, Epoch epoch) {
    VARVE_ASSERT(epoch >= 0 && epoch < epoch_max, "an epoch has room to grow");
    return {key, store::Put{void_item(epoch + 1)}, free_at(epoch)};
}

store::Write mark_done(const store::Key& key, const std::string& tx) {
    return {key, store::Update{.set = {{done_attribute, std::int64_t{1}}}, .remove = {}},
            store::equals(state_attribute, committed_state) && store::equals(write_id_attribute, tx)};
}

}  // namespace varve::transactions
