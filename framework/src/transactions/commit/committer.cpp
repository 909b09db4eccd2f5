#include "transactions/commit/committer.h"

#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/bell.h"
#include "transactions/ended_writes.h"
#include "transactions/handle.h"

#include <varve/core/error.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

// What an attempt is, which way it takes, and how it learns its end.

namespace varve::transactions {
namespace {

bool names_each_item_once(const std::vector<Participant>& participants) {
    std::set<store::Key> keys;
    return std::ranges::all_of(participants, [&](const Participant& one) { return keys.insert(one.key).second; });
}

}  // namespace

Committer::Committer(Coordinator& coordinator, const Plan& plan, std::string tx, Bounds bounds)
    : coordinator_(coordinator),
      plan_(plan),
      began_(coordinator_.runtime_.clock.get().steady_now()),
      until_(bounds.until),
      backoff_(RetryPolicy::waiting(std::min(retry_policy().time_max, until_ - began_)), coordinator_.runtime_),
      patience_(coordinator_.resolver_, coordinator_.metrics_, {bounds.since, tx}) {
    claim_.tx = std::move(tx);
    claim_.lease = coordinator_.runtime_.clock.get().now() + coordinator_.options_.lease;
    claim_.lease_length = coordinator_.options_.lease;
    claim_.priority = bounds.since;
    for (const SlotWrite& slot : plan.slots)
        participants_.push_back({.key = slot.key, .slot = &slot, .epoch = slot.epoch});
    std::ranges::sort(participants_, {}, &Participant::key);
    for (const HeldSlot& held : plan.held) {
        participants_.push_back(
            {.key = held.key, .held = &held, .epoch = held.epoch, .prepared = true, .maybe_prepared = true});
    }
    for (const RowWrite& row : plan.rows) {
        const bool unsaid =
            row.held && planted(PlantedFault::a_held_row_is_committed_before_it_says_what_becomes_of_it);
        participants_.push_back({.key = row.key, .row = &row, .prepared = unsaid, .maybe_prepared = row.held});
    }
    for (const HeldRow& row : plan.rows_held)
        participants_.push_back({.key = row.key, .held_row = &row, .prepared = true, .maybe_prepared = true});
    choose_primary();
    VARVE_ASSERT(names_each_item_once(participants_), "a transaction writes each item once");
}

std::variant<Conflict, Commit> Committer::run() {
    try {
        return run_by_its_way();
    } catch (const Error&) {
        throw;  // it says what it means
    } catch (const std::exception&) {
        // For want of memory, most likely, and at any point: before the commit was asked for or after.
        if (asked_by_ && has_committed_after_all()) return committed(*asked_by_);
        undo_prepared();
        throw;
    }
}

std::variant<Conflict, Commit> Committer::run_by_its_way() {
    if (participants_.empty()) {
        if (!validate()) return conflict();
        return committed(Path::nothing);
    }
    if (primary().row != nullptr && !is_there(primary()) && !lay_tombstone()) return conflict();
    if (is_one_write()) return write_in_one_request(Path::single);
    if (fits_native()) return write_in_one_request(Path::native);
    return run_protocol();
}

void Committer::choose_primary() {
    const bool is_of_rows = plan_.slots.empty() && !plan_.rows.empty();
    const bool may_be_a_row = is_of_rows && plan_.on_primary.empty() && !plan_.is_reserved();
    if (may_be_a_row && (is_one_write() || fits_native())) {
        const auto tells = [&](const Participant& one) {
            return (is_one_write() || is_there(one)) && writers_after(one.row->seen).size() <= writers_max;
        };
        const auto row = std::ranges::find_if(participants_, tells);
        if (row != participants_.end()) return std::iter_swap(participants_.begin(), row);
    }
    if (is_of_rows || plan_.is_reserved() || (plan_.slots.empty() && !plan_.on_primary.empty()))
        return take_primary_of_its_own();
    if (!participants_.empty()) name_primary();
}

void Committer::take_primary_of_its_own() {
    participants_.insert(participants_.begin(), {.key = slot_key(transaction_stream(claim_.tx), 1)});
    has_primary_of_its_own_ = true;
    name_primary();
}

void Committer::name_primary() {
    claim_.primary = primary().key;
    claim_.primary_epoch = primary().epoch;
}

bool Committer::holds_primary() const {
    return plan_.validates() && !has_primary_of_its_own_ && !planted(PlantedFault::the_primary_is_not_held);
}

bool Committer::fits_native() const {
    return coordinator_.options_.strategy == Strategy::automatic && plan_.ranges_read.empty() && !plan_.is_reserved() &&
           participants_.size() + plan_.heads_read.size() + plan_.rows_read.size() + (is_announced() ? 1 : 0) <=
               coordinator_.capabilities_.atomic_writes_max;
}

std::vector<store::Key> Committer::secondary_keys() const {
    std::vector<store::Key> keys;
    for (std::size_t i = 1; i < participants_.size(); ++i) {
        if (participants_[i].held_row == nullptr) keys.push_back(participants_[i].key);  // those stay as they are
    }
    return keys;
}

store::Item Committer::payload(const Participant& participant) const {
    store::Item payload = participant.slot != nullptr ? participant.slot->payload : store::Item{};
    if (&participant == &participants_.front() &&
        !(has_primary_of_its_own_ && planted(PlantedFault::effects_are_lost_where_the_primary_is_the_transactions_own)))
        payload.insert(plan_.on_primary.begin(), plan_.on_primary.end());
    return payload;
}

bool Committer::is_announced() const {
    if (!coordinator_.announces()) return false;
    const auto is_of_aggregate = [](const auto& slot) { return !is_internal(slot.key.partition); };
    return plan_.on_primary.contains(effects_attribute) || std::ranges::any_of(plan_.slots, is_of_aggregate) ||
           std::ranges::any_of(plan_.held, is_of_aggregate);
}

store::Write Committer::bell() const {
    Bell bell = bell_of(claim_.tx, primary().key, primary().epoch, coordinator_.bell_shards_);
    for (std::size_t i = 1; i < participants_.size() && asked_by_ == Path::native; ++i) {
        const store::Key& key = participants_[i].key;
        if (key.table == events_table().name && !is_internal(key.partition)) bell.beside.push_back(key);
    }
    return ring(bell);
}

store::WriteAnswer Committer::write_and_ring(const store::Write& commit) {
    std::vector<store::Write> writes{commit};
    if (is_announced() && !has_rung()) writes.push_back(bell());
    std::vector<store::WriteAnswer> answers = coordinator_.store_.write(writes);
    VARVE_ASSERT(answers.size() == writes.size(), "a store answers every write of a batch");
    if (answers.size() > 1 && std::holds_alternative<store::Applied>(answers.back())) rung_for_ = primary().epoch;
    return std::move(answers.front());
}

void Committer::announce() try {
    const store::Write write = bell();
    for (Backoff backoff{retry_policy(), coordinator_.runtime_};;) {
        const store::WriteAnswer answer = coordinator_.store_.write({&write, 1}).front();
        const auto* failure = std::get_if<Failure>(&answer);
        if (failure == nullptr) break;
        const std::string why = "it is written, and could not be announced to who follows events: " + failure->message;
        if (!worth_repeating(*failure) || !backoff.next()) throw_in_doubt(why);
    }
    rung_for_ = primary().epoch;
} catch (const Error&) {
    throw;
} catch (const std::exception&) {
    ++coordinator_.metrics_.in_doubt;
    std::rethrow_exception(coordinator_.in_doubt_without_memory_);
}

std::variant<Conflict, Commit> Committer::committed(Path path) {
    VARVE_ASSERT(!claim_.tx.empty(), "a commit is acknowledged once");
    if (is_announced() && !has_rung()) announce();
    if (primary_is_a_row()) coordinator_.ended_writes_->add(claim_.tx);
    if (path == Path::protocol) finalise_in_background();
    if (plan_.is_reserved()) path = Path::reserved;
    ++coordinator_.metrics_.committed;
    ++coordinator_.metrics_.committed_by[static_cast<std::size_t>(path)];
    // Moved, since nothing may fail any more.
    return Commit{
        .tx = std::move(claim_.tx), .path = path, .primary = std::move(claim_.primary), .waited = patience_.waited()};
}

Conflict Committer::conflict() {
    ++coordinator_.metrics_.conflicts;
    return {.what = met_,
            .over = !waited_in_vain_,
            .waited = patience_.waited(),
            .details = met_at_ ? lost_at(*met_at_) : ConflictDetails{}};
}

std::variant<Conflict, Commit> Committer::learn_outcome(Path path, const std::string& why) {
    met_ = why;
    const bool has_committed = primary_is_a_row() ? ask_row() : resolve_own() == Verdict::committed;
    return has_committed ? committed(path) : conflict();
}

Verdict Committer::resolve_own() {
    claim_.primary_epoch = claims_were_sent_ ? claim_.primary_epoch : primary().epoch;
    for (Backoff backoff{retry_policy(), coordinator_.runtime_};;) {
        try {
            const Verdict verdict = coordinator_.resolver_.resolve(claim_);
            if (verdict != Verdict::undecided) return verdict;
        } catch (const Error& error) {
            if (!error.retryable()) throw_in_doubt(error.what());
            met_ = error.what();
        }
        if (!backoff.next()) throw_in_doubt(met_);
    }
}

bool Committer::has_committed_after_all() {
    try {
        if (primary_is_a_row()) throw_in_doubt("it ended without an answer");
        return resolve_own() == Verdict::committed;
    } catch (const Error&) {
        throw;
    } catch (const std::exception&) {
        ++coordinator_.metrics_.in_doubt;
        std::rethrow_exception(coordinator_.in_doubt_without_memory_);
    }
}

void Committer::throw_in_doubt(const std::string& why) {
    ++coordinator_.metrics_.in_doubt;
    throw InDoubtError("whether transaction " + claim_.tx + " on " + store::to_string(primary().key) +
                           " has committed is not known: " + why,
                       primary_is_a_row() ? TransactionHandle{} : handle_of(claim_));
}

}  // namespace varve::transactions
