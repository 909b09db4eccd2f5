#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/commit/committer.h"
#include "transactions/finaliser.h"
#include "transactions/read_patiently.h"

#include <varve/core/error.h>

#include <algorithm>

// The protocol from the decided plan on, step by step as in docs/protocol.md.

namespace varve::transactions {

std::variant<Conflict, Commit> Committer::run_protocol() {
    VARVE_ASSERT(primary().row == nullptr, "a transaction's primary is a slot");
    VARVE_ASSERT(primary().key == claim_.primary && primary().epoch == claim_.primary_epoch,
                 "the claims name the primary as it was found");
    claims_were_sent_ = true;
    Committed content;
    bool ready = false;
    try {
        check_room();
        const bool early = planted(PlantedFault::validation_before_the_prepares);
        ready = early ? validate() && prepare() : prepare() && validate();
        if (ready) content = primary_content();
    } catch (const Error&) {
        undo_prepared();
        throw;
    }
    if (ready) return commit_primary(content);
    undo_prepared();
    return conflict();
}

bool Committer::prepare() {
    for (;;) {
        std::vector<Participant*> open;
        std::vector<store::Write> writes;
        for (std::size_t i = holds_primary() ? 0 : 1; i < participants_.size(); ++i) {
            Participant& participant = participants_[i];
            if (participant.prepared) continue;
            open.push_back(&participant);
            writes.push_back(prepare(participant));
        }
        if (open.empty()) return true;

        for (Participant* participant : open) participant->maybe_prepared = true;
        const std::vector<store::WriteAnswer> answers = coordinator_.store_.write(writes);
        VARVE_ASSERT(answers.size() == writes.size(), "a store answers every write of a batch");
        Obstacle worst = Obstacle::none;
        const Failure* unanswered = nullptr;
        std::vector<Resolver::Claimed> claimed;
        std::vector<Participant*> in_the_way;  // of these
        for (std::size_t i = 0; i < open.size(); ++i) {
            if (const auto* refused = std::get_if<store::Refused>(&answers[i])) {
                if (refused->current && is_claimed_as_seen(*open[i], *refused->current)) {
                    claimed.push_back({open[i]->key, *refused->current});
                    in_the_way.push_back(open[i]);
                    continue;
                }
                const Obstacle obstacle = meet(*open[i], refused->current);
                open[i]->prepared = obstacle == Obstacle::none;
                worst = std::max(worst, obstacle);
            } else if (const auto* failure = std::get_if<Failure>(&answers[i])) {
                unanswered = failure;
                prepare_unanswered_ = prepare_unanswered_ || failure->in_doubt;
                if (planted(PlantedFault::a_commit_without_an_answer_to_every_prepare)) {
                    unanswered = nullptr;
                    open[i]->prepared = true;
                }
            } else {
                open[i]->prepared = true;
            }
        }
        if (worst == Obstacle::moved) return false;
        settle_ahead(claimed);
        for (std::size_t i = 0; i < claimed.size(); ++i) worst = std::max(worst, meet(*in_the_way[i], claimed[i].item));
        if (worst == Obstacle::moved) return false;
        if (unanswered != nullptr && (!worth_repeating(*unanswered) || answers_are_overdue())) {
            raise_certain(*unanswered);  // a prepare that arrives late is undone: the whole is not in doubt
        }
        if (!another_round({.somebody_is_alive = worst == Obstacle::alive, .unanswered = unanswered != nullptr}))
            return false;
    }
}

store::Write Committer::prepare(const Participant& one) const {
    if (one.row == nullptr) return prepare_slot(one.key, one.epoch, claim_, payload(one));
    if (one.row->held) return fill_row(one.key, claim_.tx, one.row->after);
    return prepare_row(one.key, one.row->seen, claim_, one.row->after);
}

bool Committer::validate() {
    if (!plan_.validates() || planted(PlantedFault::no_validation)) return true;
    std::vector<store::Key> keys;
    for (const HeadRead& read : plan_.heads_read) keys.push_back(read.next);
    for (const RowRead& read : plan_.rows_read) keys.push_back(read.key);
    for (;;) {
        Obstacle worst = Obstacle::none;
        const std::vector<std::optional<store::Item>> items =
            keys.empty() ? std::vector<std::optional<store::Item>>{}
                         : read_patiently(coordinator_, until_, [&] { return coordinator_.store_.read(keys); });
        std::vector<Resolver::Claimed> found;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (items[i]) found.push_back({keys[i], *items[i]});
        }
        settle_ahead(found);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::size_t heads = plan_.heads_read.size();
            worst = std::max(worst, i < heads ? meet_head_read(plan_.heads_read[i], items[i])
                                              : meet_row_read(keys[i], plan_.rows_read[i - heads].rev, items[i]));
        }
        for (const RangeRead& read : plan_.ranges_read) worst = std::max(worst, meet_range_read(read));
        if (worst == Obstacle::none) return true;
        if (worst == Obstacle::moved ||
            !another_round({.somebody_is_alive = worst == Obstacle::alive, .unanswered = false}))
            return false;
    }
}

std::variant<Conflict, Commit> Committer::commit_primary(const Committed& content) {
    const store::Write write = holds_primary() ? commit_pending_slot(primary().key, content)
                                               : commit_free_slot(primary().key, claim_.primary_epoch, content);
    VARVE_ASSERT(std::all_of(participants_.begin() + (holds_primary() ? 0 : 1), participants_.end(),
                             [](const Participant& one) { return one.prepared; }),
                 "the primary is committed when all the others are prepared");
    VARVE_ASSERT(primary().epoch == claim_.primary_epoch, "nobody commits at another epoch than the claims name");
    asked_by_ = Path::protocol;
    for (bool unanswered = false;;) {
        const store::WriteAnswer answer = write_and_ring(write);
        if (std::holds_alternative<store::Applied>(answer)) return committed(Path::protocol);
        if (const auto* refused = std::get_if<store::Refused>(&answer)) {
            const Slot slot = decode_slot(primary().key, refused->current);
            const auto* there = std::get_if<Committed>(&slot);
            if (there != nullptr && there->write_id == claim_.tx && there->payload == content.payload)
                return committed(Path::protocol);
            moved(primary().key,
                  std::holds_alternative<Free>(slot) ? "was fenced by somebody else" : "was taken by somebody else");
            undo_prepared();
            return conflict();
        }
        const auto& failure = std::get<Failure>(answer);
        unanswered = unanswered || failure.in_doubt;
        if (planted(PlantedFault::a_lost_answer_is_taken_for_an_abort)) {
            undo_prepared();
            return conflict();
        }
        met_ = "the store did not answer: " + failure.message;
        if (worth_repeating(failure) && !answers_are_overdue() && backoff_.next()) continue;
        if (!unanswered) {
            undo_prepared();
            raise(failure);
        }
        if (resolve_own() == Verdict::committed) return committed(Path::protocol);
        undo_prepared();
        return conflict();
    }
}

void Committer::finalise_in_background() try {
    if (participants_.size() == 1) return;
    Finaliser::Work work{.tx = claim_.tx, .placed = {}, .finalised = plan_.finalised, .done = {}};
    for (std::size_t i = 1; i < participants_.size(); ++i) {
        const Participant& one = participants_[i];
        VARVE_ASSERT(one.prepared, "only what was prepared is finalised");
        const bool stays_own =
            one.row == nullptr && one.held_row == nullptr && (one.held == nullptr || one.held->payload);
        work.placed.push_back({.write = finalise(one),
                               .tells = plan_.finalised && stays_own,
                               .leaves_something = stays_own || one.row != nullptr});
    }
    if (!plan_.rows.empty() && coordinator_.marks_done()) work.done = mark_done(primary().key, claim_.tx);
    coordinator_.finaliser_->add(std::move(work));
} catch (const std::exception& error) {
    // It is committed all the same.
    try_to_log(coordinator_.runtime_.log, LogLevel::warning,
               [&] { return std::string{"a committed transaction is left to others to finalise: "} + error.what(); });
}

store::Write Committer::finalise(const Participant& one) const {
    if (one.row != nullptr) {
        return finalise_row(one.key, one.row->seen, {.claim = claim_, .after = one.row->after, .was_expires = {}},
                            coordinator_.resolver_.tombstone_expiry());
    }
    if (one.held_row != nullptr) return release_row(one.key, one.held_row->seen, intent_on(*one.held_row));
    if (one.held == nullptr) return finalise_slot(one.key, claim_.tx);
    if (!one.held->payload) return undo(one);
    return commit_pending_slot(one.key, {.write_id = claim_.tx, .payload = *one.held->payload});
}

store::Write Committer::undo(const Participant& one) const {
    if (one.held_row != nullptr) return undo_row(one.key, one.held_row->seen, intent_on(*one.held_row));
    if (one.row == nullptr) return undo_slot(one.key, claim_.tx, one.epoch);
    const RowWrite& row = *one.row;
    return undo_row(one.key, row.seen, {.claim = claim_, .after = row.after, .was_expires = row.seen.expires});
}

Intent Committer::intent_on(const HeldRow& row) const {
    return {.claim = claim_, .after = {}, .was_expires = row.seen.expires, .reserved = true};
}

void Committer::undo_prepared() {
    VARVE_ASSERT(!claim_.tx.empty(), "what was acknowledged is not undone");
    try {
        // A prepare may still be on its way: fenced, it is undone at sight instead of after its lease.
        if (prepare_unanswered_) coordinator_.resolver_.resolve(claim_);
        std::vector<store::Write> undoes;
        for (const Participant& one : participants_) {
            if (one.maybe_prepared) undoes.push_back(undo(one));
        }
        if (!undoes.empty()) coordinator_.let_go(std::move(undoes));
    } catch (const std::exception& error) {
        try_to_log(coordinator_.runtime_.log, LogLevel::info,
                   [&] { return std::string{"an aborted transaction is left to others: "} + error.what(); });
    }
}

}  // namespace varve::transactions
