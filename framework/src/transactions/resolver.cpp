#include "transactions/resolver.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "store/sightings.h"
#include "transactions/in_turn.h"

#include <varve/core/error.h>

#include <algorithm>

namespace varve::transactions {
namespace {

/// The write that clears the claimed item after an abort; `item` as read.
store::Write undo(const store::Key& key, const store::Item& item) {
    if (key.table == events_table().name) {
        const Pending pending = pending_slot(key, decode_slot(key, item));
        return undo_slot(key, pending.claim.tx, pending.epoch);
    }
    const Row row = decode_row(key, item);
    VARVE_ASSERT(row.intent, "only what is claimed is undone");
    return undo_row(key, row.image, *row.intent);
}

}  // namespace

Verdict judge(const Claim& claim, const Slot& primary) {
    VARVE_ASSERT(!claim.tx.empty(), "every claim names its transaction");
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
    : store_(store),
      runtime_(runtime),
      options_(options),
      metrics_(metrics),
      sightings_(std::make_unique<store::Sightings>()) {}

Resolver::~Resolver() = default;

Resolver::Resolution Resolver::look(const Claim& claim) {
    Slot primary = decode_slot(claim.primary, store_.read({&claim.primary, 1}).front());
    return {judge(claim, primary), std::move(primary)};
}

Verdict Resolver::settle(const store::Key& key, const store::Item& item, std::string_view own) {
    const Claimed claimed{key, item};
    return settle({&claimed, 1}, own).front();
}

std::vector<Verdict> Resolver::settle(std::span<const Claimed> claimed, std::string_view own) {
    std::vector<Claim> claims;
    std::map<store::Key, std::vector<std::size_t>> by_primary;
    for (const auto& [key, item] : claimed) {
        claims.push_back(claim_there(key, item));
        by_primary[claims.back().primary].push_back(claims.size() - 1);
    }
    std::vector<store::Key> keys;
    for (const auto& [key, indexes] : by_primary) keys.push_back(key);

    std::vector<Verdict> verdicts(claims.size(), Verdict::undecided);
    std::optional<Failure> never;
    const auto told = [&](std::size_t i, const store::Write&, const store::WriteAnswer& answer) {
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            if (!worth_repeating(*failure)) never = *failure;
            verdicts[i] = Verdict::undecided;  // as good as alive, for whoever has to wait until it is gone
        } else if (std::holds_alternative<store::Applied>(answer)) {
            ++(verdicts[i] == Verdict::committed ? metrics_.finalised_for_others : metrics_.undone_for_others);
        }
    };
    WritesInTurn<std::size_t> clears;
    const auto clear = [&](std::size_t i, Verdict verdict, const Slot& primary) {
        verdicts[i] = verdict;
        if (verdict == Verdict::undecided) return;
        VARVE_ASSERT(verdict == Verdict::aborted || std::holds_alternative<Committed>(primary),
                     "only a committed primary finalises what is claimed for it");
        const auto& [key, item] = claimed[i];
        clears.add(verdict == Verdict::committed ? finalise(key, item, std::get<Committed>(primary)) : undo(key, item),
                   i);
        if (clears.are_many()) clears.send(store_, told);
    };

    const auto may_be_fenced = [&](std::size_t i) {
        return lease_is_over(claimed[i].key, claims[i]) || (!own.empty() && command_of(claims[i].tx) == own);
    };
    Slots to_fence;
    read_in_turn(store_, keys, [&](std::size_t k, std::optional<store::Item> item) {
        Slot primary = decode_slot(keys[k], std::move(item));
        bool ends = false;
        for (const std::size_t i : by_primary.at(keys[k])) {
            const Verdict verdict = judge(claims[i], primary);
            clear(i, verdict, primary);
            ends = ends || (verdict == Verdict::undecided && may_be_fenced(i));
        }
        if (!ends) return;
        if (auto* pending = std::get_if<Pending>(&primary)) pending->payload.clear();  // its state is enough
        to_fence.emplace(keys[k], std::move(primary));
    });
    const bool without_fencing = planted(PlantedFault::undo_without_fencing);
    if (!without_fencing) fence(to_fence);
    for (const auto& [key, primary] : to_fence) {
        for (const std::size_t i : by_primary.at(key)) {
            if (verdicts[i] != Verdict::undecided) continue;
            clear(i, without_fencing ? Verdict::aborted : judge(claims[i], primary), primary);
        }
    }
    clears.send(store_, told);
    if (never) raise(*never);
    return verdicts;
}

bool Resolver::lease_is_over(const store::Key& key, const Claim& claim) {
    const SteadyTime now = runtime_.clock.get().steady_now();
    const std::string as_it_stands = claim.tx + " " + std::to_string(claim.lease.time_since_epoch().count());
    const Duration length = claim.lease_length > Duration::zero() ? claim.lease_length : options_.lease;
    return now - sightings_->since(key, as_it_stands, now) >= length ||
           claim.lease + options_.retention / 2 <= runtime_.clock.get().now();
}

Verdict Resolver::resolve(const Claim& claim) {
    auto [verdict, primary] = look(claim);
    if (verdict != Verdict::undecided) return verdict;
    Slots slots;
    slots.emplace(claim.primary, std::move(primary));
    fence(slots);
    return judge(claim, slots.at(claim.primary));
}

void Resolver::fence(Slots& primaries) {
    if (primaries.empty()) return;
    std::vector<store::Write> writes;
    for (const auto& [key, slot] : primaries) {
        VARVE_ASSERT(!std::holds_alternative<Committed>(slot), "what is committed is never fenced");
        const auto* pending = std::get_if<Pending>(&slot);
        writes.push_back(pending != nullptr ? undo_slot(key, pending->claim.tx, pending->epoch)
                                            : fence_free_slot(key, free_slot(key, slot).epoch));
    }
    std::vector<store::WriteAnswer> answers = store_.write(writes);
    VARVE_ASSERT(answers.size() == writes.size(), "a store answers every write of a batch");
    std::vector<store::Key> unanswered;
    for (std::size_t i = 0; i < writes.size(); ++i) {
        Slot& slot = primaries.at(writes[i].key);
        if (std::holds_alternative<store::Applied>(answers[i])) {
            ++metrics_.fenced;
            const auto* pending = std::get_if<Pending>(&slot);
            slot = Free{(pending != nullptr ? pending->epoch : free_slot(writes[i].key, slot).epoch) + 1};
        } else if (auto* refused = std::get_if<store::Refused>(&answers[i])) {
            slot = decode_slot(writes[i].key, std::move(refused->current));
        } else {
            unanswered.push_back(writes[i].key);
        }
    }
    read_in_turn(store_, unanswered, [&](std::size_t i, std::optional<store::Item> item) {
        primaries.at(unanswered[i]) = decode_slot(unanswered[i], std::move(item));
    });
}

std::vector<store::Key> Resolver::participants(const Committed& primary) {
    if (primary.continued == 0) return primary.participants;
    std::vector<store::Key> slots;
    for (std::int64_t i = 0; i < primary.continued; ++i) {
        slots.push_back(slot_key(transaction_stream(primary.write_id), i + 2));
    }
    std::vector<store::Key> all;
    read_in_turn(store_, slots, [&](std::size_t i, std::optional<store::Item> item) {
        const Slot slot = decode_slot(slots[i], std::move(item));
        const auto* part = std::get_if<Part>(&slot);
        if (part == nullptr || part->write_id != primary.write_id) {
            throw CorruptionError("the transaction " + primary.write_id + " has lost a part of its participants: " +
                                  store::to_string(slots[i]) + " is not its own");
        }
        all.insert(all.end(), part->participants.begin(), part->participants.end());
    });
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
        VARVE_ASSERT(row.intent, "only what is claimed is finalised");
        return row.intent->reserved ? release_row(key, row.image, *row.intent)
                                    : finalise_row(key, row.image, *row.intent, tombstone_expiry());
    }
    const Pending pending = pending_slot(key, decode_slot(key, item));
    if (!pending.reserved) return finalise_slot(key, pending.claim.tx);
    std::optional<store::Item> content = payload(key, pending, primary);
    if (!content) return undo_slot(key, pending.claim.tx, pending.epoch);
    return commit_pending_slot(key, {.write_id = pending.claim.tx, .payload = std::move(*content)});
}

std::int64_t Resolver::tombstone_expiry() const {
    // Rounded up: a tombstone never goes early.
    return std::chrono::ceil<std::chrono::seconds>(runtime_.clock.get().now() + options_.retention)
        .time_since_epoch()
        .count();
}

}  // namespace varve::transactions
