#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/resolver.h>

#include <algorithm>

namespace varve::transactions {

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

store::Write undo(const store::Key& key, const store::Item& item) {
    if (key.table == events_table().name) {
        const Slot slot = decode_slot(key, item);
        const auto& pending = std::get<Pending>(slot);
        return undo_slot(key, pending.claim.tx, pending.epoch);
    }
    const Row row = decode_row(key, item);
    return undo_row(key, row.image, row.intent.value());
}

Resolver::Resolver(store::ItemStore& store, Runtime runtime, Options options, Metrics& metrics)
    : store_(store), runtime_(runtime), options_(options), metrics_(metrics) {}

Resolver::Resolution Resolver::look(const Claim& claim) {
    Slot primary = decode_slot(claim.primary, store_.read({&claim.primary, 1}).front());
    return {judge(claim, primary), std::move(primary)};
}

Verdict Resolver::settle(const store::Key& key, const store::Item& item, const Priority* mine) {
    const Claim claim = claim_on(key, item).value();
    Resolution resolution = look(claim);
    const auto may_fence = [&] {
        return claim.lease <= runtime_.clock.now() || (mine != nullptr && *mine < claim.rank());
    };
    if (resolution.verdict == Verdict::undecided && may_fence()) {
        resolution = VARVE_MUTANT("undo without fencing") ? Resolution{Verdict::aborted, Free{}}
                                                          : fence(claim, resolution.primary);
    }
    if (resolution.verdict == Verdict::undecided || clear(key, item, resolution)) return resolution.verdict;
    return Verdict::undecided;  // it lies there still: as good as alive, for whoever has to wait until it is gone
}

Verdict Resolver::end(const Claim& claim) {
    const Resolution resolution = look(claim);
    return resolution.verdict == Verdict::undecided ? fence(claim, resolution.primary).verdict : resolution.verdict;
}

Resolver::Resolution Resolver::fence(const Claim& claim, const Slot& primary) {
    const auto* pending = std::get_if<Pending>(&primary);
    const store::Write write = pending != nullptr ? undo_slot(claim.primary, claim.tx, pending->epoch)
                                                  : fence_free_slot(claim.primary, std::get<Free>(primary).epoch);
    store::WriteAnswer answer = store_.write({&write, 1}).front();
    if (std::holds_alternative<store::Applied>(answer)) {
        ++metrics_.fenced;
        return {Verdict::aborted, Free{claim.primary_epoch + 1}};
    }
    if (auto* refused = std::get_if<store::Refused>(&answer)) {
        Slot now = decode_slot(claim.primary, std::move(refused->current));
        return {judge(claim, now), std::move(now)};
    }
    return look(claim);
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
        return finalise_row(key, decode_row(key, item).intent.value(), tombstone_expiry());
    }
    const Slot slot = decode_slot(key, item);
    const auto& pending = std::get<Pending>(slot);
    if (!pending.reserved) return finalise_slot(key, pending.claim.tx);
    std::optional<store::Item> content = payload(key, pending, primary);
    if (!content) return undo_slot(key, pending.claim.tx, pending.epoch);
    return commit_pending_slot(key, {.write_id = pending.claim.tx, .payload = std::move(*content)});
}

bool Resolver::clear(const store::Key& key, const store::Item& item, const Resolution& resolution) {
    const auto* commit = resolution.verdict == Verdict::committed ? &std::get<Committed>(resolution.primary) : nullptr;
    const store::Write write = commit != nullptr ? finalise(key, item, *commit) : undo(key, item);
    const store::WriteAnswer answer = store_.write({&write, 1}).front();
    if (const auto* failure = std::get_if<Failure>(&answer)) {
        if (!worth_repeating(*failure)) raise(*failure);
        return false;
    }
    if (std::holds_alternative<store::Applied>(answer)) {
        ++(commit != nullptr ? metrics_.finalised_for_others : metrics_.undone_for_others);
    }
    return true;
}

std::int64_t Resolver::tombstone_expiry() const {
    // Rounded up: a tombstone never goes early.
    return std::chrono::ceil<std::chrono::seconds>(runtime_.clock.now() + options_.retention)
        .time_since_epoch()
        .count();
}

}  // namespace varve::transactions
