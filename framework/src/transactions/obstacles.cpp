#include "attempt.h"
#include "mutants.h"

#include <algorithm>

// What stands in the way of an attempt's writes and reads, and how long it waits for that to pass.

namespace varve::transactions {

bool Attempt::has_a_double(const Participant& participant, const store::Item& current) const {
    const std::optional<Claim> claim = claim_on(participant.key, current);
    if (claim && claim->tx != claim_.tx) return false;
    if (claim && (claim->primary != claim_.primary || claim->priority != claim_.priority)) return true;
    if (participant.row != nullptr) {
        const Row row = decode_row(participant.key, current);
        if (row.intent) return row.intent->after != participant.row->after;
        return row.image.rev == claim_.tx && row.image.data != participant.row->after;
    }
    if (participant.slot == nullptr) return false;
    const Slot slot = decode_slot(participant.key, current);
    if (const auto* pending = std::get_if<Pending>(&slot)) return pending->payload != payload(participant);
    const auto* committed = std::get_if<Committed>(&slot);
    return committed != nullptr && committed->write_id == claim_.tx && committed->payload != payload(participant);
}

Obstacle Attempt::meet(Participant& participant, const std::optional<store::Item>& current) {
    participant.over.reset();
    if (current && has_a_double(participant, *current)) {
        participant.maybe_prepared = false;  // what is there is not to be undone
        return moved(participant.key, "was written by another transaction of the same id");
    }
    return participant.row != nullptr ? meet_row(participant, current) : meet_slot(participant, current);
}

Obstacle Attempt::meet_slot(Participant& participant, const std::optional<store::Item>& current) {
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
    const Epoch epoch = std::get<Free>(slot).epoch;
    if (epoch != participant.epoch && claims_were_sent_ && &participant == &primary() &&
        !VARVE_MUTANT("the primary's epoch changes after the prepares")) {
        return moved(participant.key, "was fenced by somebody else");
    }
    participant.epoch = epoch;
    return Obstacle::cleared;
}

Obstacle Attempt::meet_row(const Participant& participant, const std::optional<store::Item>& current) {
    const Row row = decode_row(participant.key, current);
    if (row.intent && row.intent->claim.tx == claim_.tx) return Obstacle::none;
    if (participant.row->held) return moved(participant.key, "is not held any more");
    if (row.intent) return meet_claim(participant.key, *current);
    if (row.image.rev == claim_.tx) return Obstacle::none;
    return row.image.rev == participant.row->seen.rev ? Obstacle::cleared
                                                      : moved(participant.key, "was written by somebody else");
}

Obstacle Attempt::meet_head_read(const HeadRead& read, const std::optional<store::Item>& current) {
    const Slot slot = decode_slot(read.next, current);
    if (std::holds_alternative<Free>(slot)) return Obstacle::none;
    if (std::holds_alternative<Committed>(slot)) return moved(read.next, "was written by somebody else");
    return meet_claim(read.next, *current);
}

Obstacle Attempt::meet_row_read(const store::Key& key, const std::optional<std::string>& rev,
                                const std::optional<store::Item>& current) {
    const Row row = decode_row(key, current);
    if (row.intent && !VARVE_MUTANT("validation overlooks intents")) return meet_claim(key, *current);
    return row.image.rev == rev ? Obstacle::none : moved(key, "was written by somebody else");
}

Obstacle Attempt::meet_range_read(const RangeRead& read) {
    std::vector<std::pair<store::Key, std::string>> found;
    Obstacle worst = Obstacle::none;
    for (const store::Record& record : c_.reader_.raw(read.query)) {
        const Row row = decode_row(record.key, record.item);
        if (is_others(record.key, record.item)) worst = std::max(worst, meet_claim(record.key, record.item));
        if (row.image.rev) found.emplace_back(record.key, *row.image.rev);
    }
    if (worst != Obstacle::none) return worst;
    return found == read.found
               ? Obstacle::none
               : moved({read.query.table, read.query.partition, read.query.first}, "and its range have changed");
}

bool Attempt::is_others(const store::Key& key, const store::Item& item) const {
    const std::optional<Claim> claim = claim_on(key, item);
    return claim && claim->tx != claim_.tx;
}

Obstacle Attempt::make_way(Participant& participant, const store::Item& item, Verdict verdict) {
    participant.over.reset();
    const store::Key& key = participant.key;
    if (participant.row != nullptr && participant.row->held) return moved(key, "is not held any more");
    const Obstacle obstacle = settled(key, item, verdict);
    if (obstacle != Obstacle::cleared || verdict != Verdict::aborted) return obstacle;
    // A primary keeps the epoch that was sent with the prepares: start over.
    if (&participant == &primary()) return moved(key, "was settled for somebody else");
    const Claim claim = claim_on(key, item).value();
    if (participant.row == nullptr) {
        participant.epoch = std::get<Pending>(decode_slot(key, item)).epoch + 1;
    } else if (decode_row(key, item).image.rev != participant.row->seen.rev) {
        return moved(key, "was written by somebody else");
    }
    if (claim.primary != key) participant.over = claim.tx;  // else it has become void
    return Obstacle::cleared;
}

Obstacle Attempt::meet_claim(const store::Key& key, const store::Item& item) {
    return settled(key, item, patience_.settle(key, item));
}

Obstacle Attempt::settled(const store::Key& key, const store::Item& item, Verdict verdict) {
    if (verdict != Verdict::undecided) {
        // If the two share a primary, it has moved on from the epoch that was sent with the prepares: start over.
        const bool shared = claims_were_sent_ && claim_on(key, item)->primary == claim_.primary;
        return shared ? moved(claim_.primary, "was settled for somebody else") : Obstacle::cleared;
    }
    met_ = store::to_string(key) + " is held by another transaction that is still running";
    return Obstacle::alive;
}

Obstacle Attempt::moved(const store::Key& key, const char* how) {
    met_ = store::to_string(key) + " " + how;
    return Obstacle::moved;
}

bool Attempt::another_round(Round last) {
    if (!last.somebody_is_alive && !last.unanswered) return true;
    if (last.somebody_is_alive && lease_is_over()) {
        waited_in_vain_ = true;
        return false;
    }
    if (last.unanswered && answers_are_overdue()) return false;
    return backoff_.next();
}

}  // namespace varve::transactions
