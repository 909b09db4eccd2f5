#include "core/planted_faults.h"
#include "transactions/commit/committer.h"
#include "transactions/read_patiently.h"

#include <algorithm>

// What stands in the way of an attempt's writes and reads, and how long it waits for that to pass.

namespace varve::transactions {

bool Committer::has_a_double(const Participant& participant, const store::Item& current) const {
    const std::optional<Claim> claim = claim_on(participant.key, current);
    if (claim && claim->tx != claim_.tx) return false;
    if (claim && (claim->primary != claim_.primary || claim->priority != claim_.priority)) return true;
    if (participant.row != nullptr) {
        const Row row = decode_row(participant.key, current);
        if (row.intent) return !row.intent->reserved && row.intent->after != participant.row->after;
        return row.image.rev == claim_.tx && row.image.data != participant.row->after;
    }
    if (participant.slot == nullptr) return false;
    const Slot slot = decode_slot(participant.key, current);
    if (const auto* pending = std::get_if<Pending>(&slot)) return pending->payload != payload(participant);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && committed->write_id == claim_.tx && committed->payload != payload(participant);
}

Obstacle Committer::meet(Participant& participant, const std::optional<store::Item>& current) {
    if (current && has_a_double(participant, *current)) {
        participant.maybe_prepared = false;  // what is there is not to be undone
        return moved(participant.key, "was written by another transaction of the same id");
    }
    return participant.row != nullptr ? meet_row(participant, current) : meet_slot(participant, current);
}

Obstacle Committer::meet_slot(Participant& participant, const std::optional<store::Item>& current) {
    const Slot slot = decode_slot(participant.key, current);
    if (const auto* committed = std::get_if<Committed>(&slot)) {
        return committed->write_id == claim_.tx ? Obstacle::none
                                                : moved(participant.key, "was written by somebody else");
    }
    if (const auto* pending = std::get_if<Pending>(&slot)) {
        return pending->claim.tx == claim_.tx ? Obstacle::none : meet_claim(participant.key, *current);
    }
    // Fenced: the stream has not moved, so the decision stands. But nobody may learn of another primary epoch than
    // the one that was sent with the prepares.
    const Epoch epoch = free_slot(participant.key, slot).epoch;
    if (epoch != participant.epoch && claims_were_sent_ && &participant == &primary() &&
        !planted(PlantedFault::the_primarys_epoch_changes_after_the_prepares)) {
        return moved(participant.key, "was fenced by somebody else");
    }
    participant.epoch = epoch;
    return Obstacle::cleared;
}

Obstacle Committer::meet_row(const Participant& participant, const std::optional<store::Item>& current) {
    const Row row = decode_row(participant.key, current);
    if (participant.row->held) {
        if (row.intent && row.intent->claim.tx == claim_.tx)
            return row.intent->reserved ? Obstacle::cleared : Obstacle::none;
        return moved(participant.key, "is not held any more");
    }
    // A claim of somebody else matters only on the image that the plan was decided on. Any other one is here to stay.
    if (is_written(row) || (row.intent && row.intent->claim.tx == claim_.tx)) return Obstacle::none;
    if (row.image.rev != participant.row->seen.rev) return moved(participant.key, "was written by somebody else");
    return row.intent ? meet_claim(participant.key, *current) : Obstacle::cleared;
}

Obstacle Committer::meet_head_read(const HeadRead& read, const std::optional<store::Item>& current) {
    const Slot slot = decode_slot(read.next, current);
    if (std::holds_alternative<Free>(slot)) return Obstacle::none;
    if (std::holds_alternative<Committed>(slot)) return moved(read.next, "was written by somebody else");
    return meet_claim(read.next, *current);
}

Obstacle Committer::meet_row_read(const store::Key& key, const std::optional<std::string>& rev,
                                  const std::optional<store::Item>& current) {
    const Row row = decode_row(key, current);
    if (row.image.rev != rev) return moved(key, "was written by somebody else");
    return row.intent && !planted(PlantedFault::validation_overlooks_intents) ? meet_claim(key, *current)
                                                                              : Obstacle::none;
}

Obstacle Committer::meet_range_read(const RangeRead& read) {
    std::vector<std::pair<store::Key, std::string>> found;
    Obstacle worst = Obstacle::none;
    const std::vector<store::Record> records =
        read_patiently(coordinator_, until_, [&] { return coordinator_.reader_.raw(read.query).records; });
    for (const store::Record& record : records) {
        const Row row = decode_row(record.key, record.item);
        if (row.intent && row.intent->claim.tx != claim_.tx)
            worst = std::max(worst, meet_claim(record.key, record.item));
        if (row.image.rev) found.emplace_back(record.key, *row.image.rev);
    }
    if (worst != Obstacle::none) return worst;
    return found == read.found
               ? Obstacle::none
               : moved({read.query.table, read.query.partition, read.query.first}, "and its range have changed");
}

bool Committer::is_claimed_as_seen(const Participant& participant, const store::Item& current) const {
    const std::optional<Claim> claim = claim_on(participant.key, current);
    if (!claim || claim->tx == claim_.tx) return false;
    const RowWrite* const row = participant.row;
    return row == nullptr || (!row->held && decode_row(participant.key, current).image.rev == row->seen.rev);
}

void Committer::settle_ahead(const std::vector<Resolver::Claimed>& found) {
    settled_ahead_.clear();
    std::vector<Resolver::Claimed> claimed;
    for (const auto& [key, item] : found) {
        const std::optional<Claim> claim = claim_on(key, item);
        if (claim && claim->tx != claim_.tx) claimed.push_back({key, item});
    }
    if (claimed.size() < 2) return;
    const std::vector<Verdict> verdicts = patience_.settle(claimed);
    for (std::size_t i = 0; i < claimed.size(); ++i) settled_ahead_.emplace(claimed[i].key, verdicts[i]);
}

Obstacle Committer::meet_claim(const store::Key& key, const store::Item& item) {
    const auto settled = settled_ahead_.extract(key);
    if ((settled ? settled.mapped() : patience_.settle(key, item)) != Verdict::undecided) {
        // If the two share a primary, it has moved on from the epoch that was sent with the prepares: start over.
        const bool shared = claims_were_sent_ && claim_there(key, item).primary == claim_.primary;
        return shared ? moved(claim_.primary, "was settled for somebody else") : Obstacle::cleared;
    }
    met_at_ = key;
    met_ = store::to_string(key) + " is held by another transaction that is still running";
    const bool holds_something = std::ranges::any_of(participants_, &Participant::prepared);
    if (holds_something && patience_.is_outranked(claim_there(key, item))) {
        waited_in_vain_ = true;
        return Obstacle::moved;
    }
    return Obstacle::alive;
}

Obstacle Committer::moved(const store::Key& key, const char* how) {
    met_at_ = key;
    met_ = store::to_string(key) + " " + how;
    return Obstacle::moved;
}

bool Committer::another_round(Round last) {
    if (!last.somebody_is_alive && !last.unanswered) return true;
    if (last.somebody_is_alive && has_waited_enough()) {
        waited_in_vain_ = true;
        return false;
    }
    if (last.unanswered && answers_are_overdue()) return false;
    return backoff_.next();
}

}  // namespace varve::transactions
