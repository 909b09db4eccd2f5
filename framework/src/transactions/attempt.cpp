#include "attempt.h"

#include "handle.h"
#include "mutants.h"

#include <varve/core/error.h>

#include <algorithm>

// What an attempt is, which way it takes, and how it learns its end.

namespace varve::transactions {

Attempt::Attempt(Coordinator& coordinator, const Plan& plan, std::string tx, Time since)
    : c_(coordinator),
      plan_(plan),
      began_(c_.runtime_.clock.steady_now()),
      backoff_(retry_policy(), c_.runtime_),
      patience_(c_.resolver_, c_.metrics_, {since, tx}) {
    claim_.tx = std::move(tx);
    claim_.lease = c_.runtime_.clock.now() + c_.options_.lease;
    claim_.priority = since;
    for (const SlotWrite& slot : plan.slots)
        participants_.push_back({.key = slot.key, .slot = &slot, .epoch = slot.epoch});
    std::ranges::sort(participants_, {}, &Participant::key);
    has_primary_of_its_own_ = needs_primary_of_its_own();
    if (has_primary_of_its_own_) {
        participants_.insert(participants_.begin(), {.key = slot_key(transaction_stream(claim_.tx), 1)});
    }
    for (const HeldSlot& held : plan.held) {
        participants_.push_back(
            {.key = held.key, .held = &held, .epoch = held.epoch, .prepared = true, .maybe_prepared = true});
    }
    for (const RowWrite& row : plan.rows)
        participants_.push_back({.key = row.key, .row = &row, .maybe_prepared = row.held});
    for (const HeldRow& row : plan.rows_held)
        participants_.push_back({.key = row.key, .held_row = &row, .prepared = true, .maybe_prepared = true});
    if (!participants_.empty() && participants_.front().row == nullptr) {
        claim_.primary = participants_.front().key;
        claim_.primary_epoch = participants_.front().epoch;
    }
}

std::variant<Commit, Conflict> Attempt::run() {
    if (participants_.empty()) {
        if (!validate()) return conflict();
        return committed(Path::nothing);
    }
    if (participants_.size() == 1 && !plan_.validates()) return write_at_once(Path::single);
    if (fits_native()) return write_at_once(Path::native);
    return run_protocol();
}

bool Attempt::needs_primary_of_its_own() const {
    if (plan_.is_reserved()) return true;
    if (!plan_.slots.empty()) return false;
    return plan_.rows.size() > 1 || (plan_.rows.size() == 1 && plan_.validates()) || !plan_.on_primary.empty();
}

bool Attempt::holds_primary() const {
    return plan_.validates() && !has_primary_of_its_own_ && !VARVE_MUTANT("the primary is not held");
}

bool Attempt::fits_native() const {
    return c_.options_.strategy == Strategy::automatic && plan_.ranges_read.empty() && !plan_.is_reserved() &&
           participants_.size() + plan_.heads_read.size() + plan_.rows_read.size() <=
               c_.capabilities_.atomic_writes_max;
}

std::vector<store::Key> Attempt::secondary_keys() const {
    std::vector<store::Key> keys;
    for (std::size_t i = 1; i < participants_.size(); ++i) keys.push_back(participants_[i].key);
    return keys;
}

store::Item Attempt::payload(const Participant& participant) const {
    store::Item payload = participant.slot != nullptr ? participant.slot->payload : store::Item{};
    if (&participant == &participants_.front() &&
        !(has_primary_of_its_own_ && VARVE_MUTANT("effects are lost where the primary is the transaction's own")))
        payload.insert(plan_.on_primary.begin(), plan_.on_primary.end());
    return payload;
}

std::variant<Commit, Conflict> Attempt::committed(Path path) {
    if (path == Path::protocol) finalise_in_background();
    if (plan_.is_reserved()) path = Path::reserved;
    ++c_.metrics_.committed;
    ++c_.metrics_.committed_by[static_cast<std::size_t>(path)];
    return Commit{.tx = claim_.tx, .path = path, .primary = claim_.primary, .waited = patience_.waited()};
}

Conflict Attempt::conflict() {
    ++c_.metrics_.conflicts;
    return {.what = met_, .over = !waited_in_vain_, .waited = patience_.waited()};
}

std::variant<Commit, Conflict> Attempt::learn_outcome(Path path, const std::string& why) {
    met_ = why;
    if (primary().row != nullptr) throw_in_doubt(why);
    return learn_verdict() == Verdict::committed ? committed(path) : conflict();
}

Verdict Attempt::learn_verdict() {
    claim_.primary_epoch = claims_were_sent_ ? claim_.primary_epoch : primary().epoch;
    for (Backoff backoff{retry_policy(), c_.runtime_};;) {
        try {
            const Verdict verdict = c_.resolver_.end(claim_);
            if (verdict != Verdict::undecided) return verdict;
        } catch (const Error& error) {
            if (!error.retryable()) throw_in_doubt(error.what());
            met_ = error.what();
        }
        if (!backoff.next()) throw_in_doubt(met_);
    }
}

void Attempt::throw_in_doubt(const std::string& why) {
    ++c_.metrics_.in_doubt;
    throw InDoubtError("whether transaction " + claim_.tx + " on " + store::to_string(primary().key) +
                           " has committed is not known: " + why,
                       primary().row != nullptr ? std::string{} : handle_of(claim_));
}

}  // namespace varve::transactions
