#include "mutants.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/transactions/slot.h>

namespace varve::transactions {
namespace {

constexpr const char* state_attribute = "state";
constexpr const char* epoch_attribute = "epoch";
constexpr const char* write_id_attribute = "write_id";
constexpr const char* participants_attribute = "participants";
constexpr const char* continued_attribute = "continued";
constexpr const char* done_attribute = "done";
constexpr const char* reserved_attribute = "reserved";

const std::string void_state = "void";
const std::string pending_state = "pending";
const std::string committed_state = "committed";
const std::string part_state = "part";

/// One entry of `participants`.
struct Participant {
    std::string table;
    std::string partition;
    std::optional<std::int64_t> version;
    std::optional<std::string> sort;
};

std::string encode(const std::vector<store::Key>& keys) {
    std::vector<Participant> participants;
    for (const store::Key& key : keys) {
        Participant& one = participants.emplace_back(Participant{key.table, key.partition, {}, {}});
        if (const auto* version = std::get_if<std::int64_t>(&key.sort)) one.version = *version;
        if (const auto* sort = std::get_if<std::string>(&key.sort)) one.sort = *sort;
    }
    return json::encode(participants);
}

[[noreturn]] void unknown(const store::Key& key, const std::string& what) {
    throw CorruptionError("the slot " + store::to_string(key) + " " + what +
                          "; it was written by a newer version of varve, by hand, or is damaged");
}

std::vector<store::Key> decode_participants(const store::Key& key, const std::string& text) {
    const auto participants = json::decode<std::vector<Participant>>(text);
    if (!participants) unknown(key, "has an unreadable list of participants (" + participants.error().message + ")");
    std::vector<store::Key> keys;
    for (const Participant& one : *participants) {
        store::Key& participant = keys.emplace_back(store::Key{one.table, one.partition});
        if (one.version) participant.sort = *one.version;
        if (one.sort) participant.sort = *one.sort;
    }
    return keys;
}

store::Item committed_item(const Committed& content) {
    store::Item item = content.payload;
    item.insert_or_assign(state_attribute, committed_state);
    item.insert_or_assign(write_id_attribute, content.write_id);
    if (!content.participants.empty()) item.insert_or_assign(participants_attribute, encode(content.participants));
    if (content.continued > 0) item.insert_or_assign(continued_attribute, content.continued);
    return item;
}

store::Item void_item(Epoch epoch) {
    if (VARVE_MUTANT("a void that does not raise the epoch")) epoch = 1;
    return {{state_attribute, void_state}, {epoch_attribute, epoch}};
}

store::Condition pending_by(const std::string& tx) {
    if (VARVE_MUTANT("a slot's undo and finalise do not check the transaction"))
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
    return std::get<std::int64_t>(slot.sort);
}

bool is_internal(std::string_view stream) {
    return stream.starts_with('$');
}

std::string transaction_stream(const std::string& tx) {
    return "$tx-" + tx;
}

Slot decode_slot(const store::Key& key, std::optional<store::Item> item) {
    if (!item) return Free{};
    const std::string* state = store::text(*item, state_attribute);
    if (state == nullptr) unknown(key, "has no state");
    const std::int64_t* epoch = store::integer(*item, epoch_attribute);
    if (*state == void_state) {
        if (epoch == nullptr || *epoch < 1) unknown(key, "is void without an epoch");
        return Free{*epoch};
    }
    const std::string* write_id = store::text(*item, write_id_attribute);
    if (*state == pending_state) {
        std::optional<Claim> claim = claim_on(key, *item);
        if (!claim || epoch == nullptr) unknown(key, "is pending without a claim");
        Pending pending{.claim = std::move(*claim), .epoch = *epoch, .payload = std::move(*item)};
        pending.reserved = pending.payload.erase(reserved_attribute) > 0;
        remove_claim(pending.payload);
        for (const char* name : {state_attribute, epoch_attribute, write_id_attribute}) pending.payload.erase(name);
        return pending;
    }
    if (*state == committed_state) {
        if (write_id == nullptr) unknown(key, "is committed without a write_id");
        Committed committed{.write_id = *write_id, .payload = std::move(*item)};
        if (const std::string* participants = store::text(committed.payload, participants_attribute)) {
            committed.participants = decode_participants(key, *participants);
        }
        if (const std::int64_t* continued = store::integer(committed.payload, continued_attribute)) {
            committed.continued = *continued;
        }
        committed.done = committed.payload.contains(done_attribute);
        for (const char* name : {state_attribute, epoch_attribute, write_id_attribute, participants_attribute,
                                 continued_attribute, done_attribute}) {
            committed.payload.erase(name);
        }
        return committed;
    }
    if (*state == part_state) {
        const std::string* participants = store::text(*item, participants_attribute);
        if (write_id == nullptr || participants == nullptr)
            unknown(key, "is a part without a write_id or participants");
        return Part{.write_id = *write_id, .participants = decode_participants(key, *participants)};
    }
    unknown(key, "is in state '" + *state + "'");
}

store::Condition free_at(Epoch epoch) {
    if (VARVE_MUTANT("a void of any epoch is accepted")) return free_at_any_epoch();
    if (epoch == 0) return !store::item_exists();
    return store::equals(state_attribute, void_state) && store::equals(epoch_attribute, epoch);
}

store::Condition free_at_any_epoch() {
    return !store::item_exists() || store::equals(state_attribute, void_state);
}

store::Write prepare_slot(const store::Key& key, Epoch epoch, const Claim& claim, const store::Item& payload,
                          const std::optional<std::string>& over) {
    store::Item item = payload;
    item.insert_or_assign(state_attribute, pending_state);
    item.insert_or_assign(epoch_attribute, epoch);
    item.insert_or_assign(write_id_attribute, claim.tx);
    put_claim(item, claim);
    return {key, store::Put{std::move(item)},
            over ? pending_by(*over) && store::equals(epoch_attribute, epoch - 1) : free_at(epoch)};
}

store::Write write_part(const store::Key& key, const Part& part) {
    store::Item item{{state_attribute, part_state},
                     {write_id_attribute, part.write_id},
                     {participants_attribute, encode(part.participants)}};
    return {key, store::Put{std::move(item)}, free_at(0)};
}

store::Write reserve_slot(const store::Key& key, Epoch epoch, const Claim& claim,
                          const std::optional<std::string>& over) {
    return prepare_slot(key, epoch, claim, {{reserved_attribute, std::int64_t{1}}}, over);
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
    // Its own epoch, too: the transaction may have been cleared here and have come back at a higher one meanwhile.
    return {key, store::Put{void_item(epoch + 1)}, pending_by(tx) && store::equals(epoch_attribute, epoch)};
}

store::Write fence_free_slot(const store::Key& key, Epoch epoch) {
    return {key, store::Put{void_item(epoch + 1)}, free_at(epoch)};
}

store::Write mark_done(const store::Key& key, const std::string& tx) {
    return {key, store::Update{.set = {{done_attribute, std::int64_t{1}}}, .remove = {}},
            store::equals(state_attribute, committed_state) && store::equals(write_id_attribute, tx)};
}

}  // namespace varve::transactions
