#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/resolver.h>

#include <algorithm>

namespace varve::transactions {
namespace {

/// The write that clears the claimed item after an abort; `item` as read.
store::Write undo(const store::Key& key, const store::Item& item) {
    if (key.table == events_table().name) {
        const Slot slot = decode_slot(key, item);
        const auto& pending = std::get<Pending>(slot);
        return undo_slot(key, pending.claim.tx, pending.epoch);
    }
    const Row row = decode_row(key, item);
    return undo_row(key, row.image, row.intent.value());
}

}  // namespace

Verdict judge(const Claim& claim, const Slot& primary) {
    if (const auto* committed = std::get_if<Committed>(&primary)) {
        return committed->write_id == claim.tx ? Verdict::committed : Verdict::aborted;
    }
    if (const auto* pending = std::get_if<Pending>(&primary)) {
        return pending->claim.tx == claim.tx ? Verdict::undecided : Verdict::aborted;
    }
    const auto* free = std::get_if<Free>(&primary);
    return free != nullptr && free->epoch == claim.primary_epoch ? Verdict::undecided : Verdict::aborted;
}

std::string copied_attribute(std::size_t index, std::string_view name) {
    return std::to_string(index) + ":" + std::string{name};
}

Resolver::Resolver(store::ItemStore& store, Runtime runtime, Options options, Metrics& metrics)
    : store_(store), runtime_(runtime), options_(options), metrics_(metrics) {}

Resolver::Resolution Resolver::look(const Claim& claim) {
    Slot primary = decode_slot(claim.primary, store_.read({&claim.primary, 1}).front());
    return {judge(claim, primary), std::move(primary)};
}

Verdict Resolver::settle(const store::Key& key, const store::Item& item, const Priority* mine) {
    const Claimed claimed{key, item};
    return settle({&claimed, 1}, mine).front();
}

std::vector<Verdict> Resolver::settle(std::span<const Claimed> claimed, const Priority* mine, Aborted aborted) {
    std::vector<Claim> claims;
    std::set<store::Key> keys;
    for (const auto& [key, item] : claimed) {
        claims.push_back(claim_on(key, item).value());
        keys.insert(claims.back().primary);
    }
    Slots primaries = read_slots(keys);

    const auto may_be_fenced = [&](const Claim& claim) {
        return lease_is_over(claim) ||
               (mine != nullptr && (*mine < claim.rank() || command_of(mine->tx) == command_of(claim.tx)));
    };
    const bool without_fencing = VARVE_MUTANT("undo without fencing");
    std::set<store::Key> to_fence;
    for (const Claim& claim : claims) {
        if (judge(claim, primaries.at(claim.primary)) == Verdict::undecided && may_be_fenced(claim))
            to_fence.insert(claim.primary);
    }
    if (!without_fencing) fence(to_fence, primaries);

    std::vector<Verdict> verdicts;
    for (const Claim& claim : claims) {
        const bool as_if = without_fencing && to_fence.contains(claim.primary);
        verdicts.push_back(as_if ? Verdict::aborted : judge(claim, primaries.at(claim.primary)));
    }
    clear(claimed, verdicts, claims, primaries, aborted);
    return verdicts;
}

bool Resolver::lease_is_over(const Claim& claim) {
    if (VARVE_MUTANT("leases are judged by the wall clock")) return claim.lease <= runtime_.clock.now();
    const SteadyTime now = runtime_.clock.steady_now();
    return now - sightings_.since(claim, now) >= options_.lease;
}

Verdict Resolver::end(const Claim& claim) {
    Slots primaries = read_slots({claim.primary});
    if (judge(claim, primaries.at(claim.primary)) == Verdict::undecided) fence({claim.primary}, primaries);
    return judge(claim, primaries.at(claim.primary));
}

Resolver::Slots Resolver::read_slots(const std::set<store::Key>& keys) {
    const std::vector<store::Key> ordered(keys.begin(), keys.end());
    Slots slots;
    if (ordered.empty()) return slots;
    std::vector<std::optional<store::Item>> items = store_.read(ordered);
    for (std::size_t i = 0; i < ordered.size(); ++i)
        slots.emplace(ordered[i], decode_slot(ordered[i], std::move(items[i])));
    return slots;
}

void Resolver::fence(const std::set<store::Key>& undecided, Slots& primaries) {
    if (undecided.empty()) return;
    std::vector<store::Write> writes;
    for (const store::Key& key : undecided) {
        const Slot& slot = primaries.at(key);
        const auto* pending = std::get_if<Pending>(&slot);
        writes.push_back(pending != nullptr ? undo_slot(key, pending->claim.tx, pending->epoch)
                                            : fence_free_slot(key, std::get<Free>(slot).epoch));
    }
    std::vector<store::WriteAnswer> answers = store_.write(writes);
    std::set<store::Key> unanswered;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        Slot& slot = primaries.at(writes[i].key);
        if (std::holds_alternative<store::Applied>(answers[i])) {
            ++metrics_.fenced;
            const auto* pending = std::get_if<Pending>(&slot);
            slot = Free{(pending != nullptr ? pending->epoch : std::get<Free>(slot).epoch) + 1};
        } else if (auto* refused = std::get_if<store::Refused>(&answers[i])) {
            slot = decode_slot(writes[i].key, std::move(refused->current));
        } else {
            unanswered.insert(writes[i].key);
        }
    }
    for (auto& [key, slot] : read_slots(unanswered)) primaries.at(key) = std::move(slot);
}

std::vector<store::Key> Resolver::participants(const Committed& primary) {
    if (primary.continued == 0) return primary.participants;
    std::vector<store::Key> slots;
    for (std::int64_t i = 0; i < primary.continued; ++i) {
        slots.push_back(slot_key(transaction_stream(primary.write_id), i + 2));
    }
    std::vector<std::optional<store::Item>> items = store_.read(slots);
    std::vector<store::Key> all;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const Slot slot = decode_slot(slots[i], std::move(items[i]));
        const auto* part = std::get_if<Part>(&slot);
        if (part == nullptr || part->write_id != primary.write_id) {
            throw CorruptionError("the transaction " + primary.write_id + " has lost a part of its participants: " +
                                  store::to_string(slots[i]) + " is not its own");
        }
        all.insert(all.end(), part->participants.begin(), part->participants.end());
    }
    return all;
}

std::optional<store::Item> Resolver::payload(const store::Key& key, const Pending& pending, const Committed& primary) {
    if (!pending.reserved) return pending.payload;
    const std::vector<store::Key> all = participants(primary);
    const auto index = static_cast<std::size_t>(std::ranges::find(all, key) - all.begin());
    const std::string prefix = copied_attribute(index, "");
    store::Item payload;
    for (auto attribute = primary.payload.lower_bound(prefix);
         attribute != primary.payload.end() && attribute->first.starts_with(prefix); ++attribute) {
        payload.emplace(attribute->first.substr(prefix.size()), attribute->second);
    }
    return payload.empty() ? std::nullopt : std::optional{std::move(payload)};
}

store::Write Resolver::finalise(const store::Key& key, const store::Item& item, const Committed& primary) {
    if (key.table != events_table().name) {
        const Row row = decode_row(key, item);
        return row.intent.value().reserved ? release_row(key, row.image, *row.intent)
                                           : finalise_row(key, *row.intent, tombstone_expiry());
    }
    const Slot slot = decode_slot(key, item);
    const auto& pending = std::get<Pending>(slot);
    if (!pending.reserved) return finalise_slot(key, pending.claim.tx);
    std::optional<store::Item> content = payload(key, pending, primary);
    if (!content) return undo_slot(key, pending.claim.tx, pending.epoch);
    return commit_pending_slot(key, {.write_id = pending.claim.tx, .payload = std::move(*content)});
}

void Resolver::clear(std::span<const Claimed> claimed, std::vector<Verdict>& verdicts, const std::vector<Claim>& claims,
                     const Slots& primaries, Aborted aborted) {
    std::vector<std::size_t> decided;
    std::vector<store::Write> writes;
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        const auto& [key, item] = claimed[i];
        if (verdicts[i] == Verdict::undecided || (verdicts[i] == Verdict::aborted && aborted == Aborted::leave))
            continue;
        decided.push_back(i);
        writes.push_back(verdicts[i] == Verdict::committed
                             ? finalise(key, item, std::get<Committed>(primaries.at(claims[i].primary)))
                             : undo(key, item));
    }
    if (writes.empty()) return;
    const std::vector<store::WriteAnswer> answers = store_.write(writes);
    const Failure* never = nullptr;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        Verdict& verdict = verdicts[decided[i]];
        if (const auto* failure = std::get_if<Failure>(&answers[i])) {
            if (!worth_repeating(*failure)) never = failure;
            verdict = Verdict::undecided;  // as good as alive, for whoever has to wait until it is gone
        } else if (std::holds_alternative<store::Applied>(answers[i])) {
            ++(verdict == Verdict::committed ? metrics_.finalised_for_others : metrics_.undone_for_others);
        }
    }
    if (never != nullptr) raise(*never);
}

std::int64_t Resolver::tombstone_expiry() const {
    // Rounded up: a tombstone never goes early.
    return std::chrono::ceil<std::chrono::seconds>(runtime_.clock.now() + options_.retention)
        .time_since_epoch()
        .count();
}

}  // namespace varve::transactions
