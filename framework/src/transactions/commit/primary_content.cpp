#include "core/assert.h"
#include "transactions/commit/committer.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/store/adapter.h>

#include <algorithm>

// What a primary slot says when it commits, and what happens when that is too much for one item.

namespace varve::transactions {
namespace {

/// What the protocol's own attributes take in a committed slot, the done mark included; participants apart.
constexpr std::size_t protocol_bytes = 200;

/// At most what a key takes in a list of participants.
std::size_t bytes_in_list(const store::Key& key) {
    constexpr std::size_t names = 80;  // and the JSON around them
    const auto* sort = std::get_if<std::string>(&key.sort);
    return json::quote(key.partition).size() + (sort ? json::quote(*sort).size() : 21) + key.table.size() + names;
}

}  // namespace

void Committer::check_room() const {
    // The primary takes the list of the others besides, or what continues it, if it is not prepared first.
    if (!holds_primary()) check_room(participants_.front().key, payload(participants_.front()));
    for (std::size_t i = holds_primary() ? 0 : 1; i < participants_.size(); ++i) {
        const Participant& one = participants_[i];
        if (one.slot == nullptr && one.row == nullptr) continue;
        // Prepared it is at its largest: a slot bears the claim besides its events, a row both of its images.
        const store::Write write =
            one.row == nullptr ? prepare(one) : prepare_row(one.key, one.row->seen, claim_, one.row->after);
        store::Item before;
        if (one.row != nullptr && (one.row->seen.data || one.row->seen.expires)) {
            before = std::get<store::Update>(write_row(one.key, one.row->seen, one.row->seen).action).set;
        }
        const std::optional<store::Item> prepared = store::apply(write, before.empty() ? nullptr : &before);
        VARVE_ASSERT(prepared, "what is prepared is there");
        const std::size_t bytes = store::bytes(one.key, *prepared);
        if (bytes > coordinator_.capabilities_.item_bytes_max)
            throw InvalidError(store::too_large(one.key, bytes, coordinator_.capabilities_.item_bytes_max));
    }
}

void Committer::check_room(const store::Key& key, const store::Item& payload) const {
    const std::size_t bytes = store::bytes(key, payload) + protocol_bytes;
    if (bytes > coordinator_.capabilities_.item_bytes_max) {
        throw InvalidError(store::too_large(key, bytes, coordinator_.capabilities_.item_bytes_max));
    }
}

Committed Committer::primary_content() {
    Committed content{.write_id = claim_.tx, .payload = payload(primary()), .participants = secondary_keys()};
    for (std::size_t i = 1; i < participants_.size(); ++i) {
        if (participants_[i].held == nullptr || !participants_[i].held->payload) continue;
        check_room(participants_[i].key, *participants_[i].held->payload);
        for (const auto& [name, value] : *participants_[i].held->payload) {
            content.payload.emplace(copied_attribute(i - 1, name), value);
        }
    }
    std::size_t total = store::bytes(primary().key, content.payload) + protocol_bytes;
    if (plan_.is_reserved() && total > coordinator_.capabilities_.item_bytes_max) {
        throw InvalidError(
            "a command that has lost so often that it reserves its streams writes the events of all of "
            "them into one item first; they take " +
            std::to_string(total) + " bytes, the store's largest item has " +
            std::to_string(coordinator_.capabilities_.item_bytes_max) + ": split the command");
    }
    for (const store::Key& key : content.participants) total += bytes_in_list(key);
    if (total > coordinator_.capabilities_.item_bytes_max) continue_participants(content);
    return content;
}

void Committer::continue_participants(Committed& content) {
    const std::string stream = transaction_stream(claim_.tx);
    std::vector<Part> parts;
    std::size_t room = 0;
    for (store::Key& key : content.participants) {
        const std::size_t needed = bytes_in_list(key);
        if (needed > room) {
            parts.push_back({.write_id = claim_.tx, .participants = {}});
            room = coordinator_.capabilities_.item_bytes_max -
                   std::min(coordinator_.capabilities_.item_bytes_max, stream.size() + protocol_bytes);
        }
        room -= std::min(room, needed);
        parts.back().participants.push_back(std::move(key));
    }
    if (parts.size() > static_cast<std::size_t>(continued_max)) {
        throw InvalidError("a transaction of " + std::to_string(content.participants.size()) +
                           " items is too large for the store's item size; split the command");
    }
    content.participants.clear();
    content.continued = static_cast<std::int64_t>(parts.size());
    std::vector<store::Write> writes;
    for (const Part& part : parts) {
        writes.push_back(write_part(slot_key(stream, static_cast<Version>(writes.size()) + 2), part));
    }
    for (;;) {
        const std::vector<store::WriteAnswer> answers = coordinator_.store_.write(writes);
        // Refused: an earlier request of ours got through. Nobody else writes there.
        const auto failed =
            std::ranges::find_if(answers, [](const auto& a) { return std::holds_alternative<Failure>(a); });
        if (failed == answers.end()) return;
        const auto& failure = std::get<Failure>(*failed);
        if (!worth_repeating(failure) || answers_are_overdue() || !backoff_.next()) {
            raise_certain(failure);
        }
    }
}

}  // namespace varve::transactions
