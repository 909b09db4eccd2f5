#include "attempt.h"
#include "finaliser.h"
#include "mutants.h"

#include <varve/core/error.h>

#include <algorithm>

// The protocol from the decided plan on, step by step as in docs/protocol.md.

namespace varve::transactions {

std::variant<Commit, Conflict> Attempt::run_protocol() {
    claims_were_sent_ = true;
    Committed content;
    bool ready = false;
    try {
        check_room();
        const bool early = VARVE_MUTANT("validation before the prepares");
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

bool Attempt::prepare() {
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
        const std::vector<store::WriteAnswer> answers = c_.store_.write(writes);
        Obstacle worst = Obstacle::none;
        const Failure* unanswered = nullptr;
        std::vector<Participant*> claimed;
        std::vector<Resolver::Claimed> claims;
        for (std::size_t i = 0; i < open.size(); ++i) {
            const auto* refused = std::get_if<store::Refused>(&answers[i]);
            if (refused != nullptr && refused->current && is_others(open[i]->key, *refused->current)) {
                claimed.push_back(open[i]);
                claims.push_back({open[i]->key, *refused->current});
            } else if (refused != nullptr) {
                const Obstacle obstacle = meet(*open[i], refused->current);
                open[i]->prepared = obstacle == Obstacle::none;
                worst = std::max(worst, obstacle);
            } else if (const auto* failure = std::get_if<Failure>(&answers[i])) {
                unanswered = failure;
                prepare_unanswered_ = prepare_unanswered_ || failure->in_doubt;
                if (VARVE_MUTANT("a commit without an answer to every prepare")) {
                    unanswered = nullptr;
                    open[i]->prepared = true;
                }
            } else {
                open[i]->prepared = true;
            }
        }
        const std::vector<Verdict> verdicts = patience_.make_way(claims);
        for (std::size_t i = 0; i < claims.size(); ++i)
            worst = std::max(worst, make_way(*claimed[i], claims[i].item, verdicts[i]));
        if (worst == Obstacle::moved) return false;
        if (unanswered != nullptr && (!worth_repeating(*unanswered) || answers_are_overdue())) {
            raise_certain(*unanswered);  // a prepare that arrives late is undone: the whole is not in doubt
        }
        if (!another_round({.somebody_is_alive = worst == Obstacle::alive, .unanswered = unanswered != nullptr}))
            return false;
    }
}

store::Write Attempt::prepare(const Participant& one) const {
    if (one.row == nullptr) return prepare_slot(one.key, one.epoch, claim_, payload(one), one.over);
    if (one.row->held) return fill_row(one.key, claim_.tx, one.row->after);
    return prepare_row(one.key, one.row->seen, claim_, one.row->after, one.over);
}

bool Attempt::validate() {
    if (!plan_.validates() || VARVE_MUTANT("no validation")) return true;
    std::vector<store::Key> keys;
    for (const HeadRead& read : plan_.heads_read) keys.push_back(read.next);
    for (const RowRead& read : plan_.rows_read) keys.push_back(read.key);
    // Holding nothing of what it looks at, it can end nobody to any avail; and two that look at what the other holds would
    // wait for each other.
    constexpr int rounds_max = 3;
    for (int round = 1;; ++round) {
        Obstacle worst = Obstacle::none;
        const std::vector<std::optional<store::Item>> items =
            keys.empty() ? std::vector<std::optional<store::Item>>{} : c_.store_.read(keys);
        std::vector<Resolver::Claimed> claims;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::size_t heads = plan_.heads_read.size();
            const bool overlooked = i >= heads && VARVE_MUTANT("validation overlooks intents");
            if (items[i] && !overlooked && is_others(keys[i], *items[i])) {
                claims.push_back({keys[i], *items[i]});
                continue;
            }
            worst = std::max(worst, i < heads ? meet_head_read(plan_.heads_read[i], items[i])
                                              : meet_row_read(keys[i], plan_.rows_read[i - heads].rev, items[i]));
        }
        const std::vector<Verdict> verdicts = patience_.settle(claims);
        for (std::size_t i = 0; i < claims.size(); ++i)
            worst = std::max(worst, settled(claims[i].key, claims[i].item, verdicts[i]));
        for (const RangeRead& read : plan_.ranges_read) worst = std::max(worst, meet_range_read(read));
        if (worst == Obstacle::none) return true;
        if (worst == Obstacle::alive && round == rounds_max) {
            waited_in_vain_ = true;
            return false;
        }
        if (worst == Obstacle::moved ||
            !another_round({.somebody_is_alive = worst == Obstacle::alive, .unanswered = false}))
            return false;
    }
}

std::variant<Commit, Conflict> Attempt::commit_primary(const Committed& content) {
    const store::Write write = holds_primary() ? commit_pending_slot(primary().key, content)
                                               : commit_free_slot(primary().key, claim_.primary_epoch, content);
    for (bool unanswered = false;;) {
        const store::WriteAnswer answer = c_.store_.write({&write, 1}).front();
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
        if (VARVE_MUTANT("a lost answer is taken for an abort")) {
            undo_prepared();
            return conflict();
        }
        met_ = "the store did not answer: " + failure.message;
        if (worth_repeating(failure) && !answers_are_overdue() && backoff_.next()) continue;
        if (!unanswered) {
            undo_prepared();
            raise(failure);
        }
        if (learn_verdict() == Verdict::committed) return committed(Path::protocol);
        undo_prepared();
        return conflict();
    }
}

void Attempt::finalise_in_background() {
    if (participants_.size() == 1) return;
    Finaliser::Work work{.tx = claim_.tx, .writes = {}, .tells = {}, .finalised = plan_.finalised, .done = {}};
    for (std::size_t i = 1; i < participants_.size(); ++i) {
        const Participant& one = participants_[i];
        work.writes.push_back(finalise(one));
        const bool is_slot = one.row == nullptr && one.held_row == nullptr;
        work.tells.push_back(plan_.finalised && is_slot && (one.held == nullptr || one.held->payload));
    }
    if (!plan_.rows.empty() || !plan_.rows_held.empty()) work.done = mark_done(primary().key, claim_.tx);
    c_.finaliser_->add(std::move(work));
}

store::Write Attempt::finalise(const Participant& one) const {
    if (one.row != nullptr) {
        return finalise_row(one.key, {.claim = claim_, .after = one.row->after, .was_expires = {}},
                            c_.resolver_.tombstone_expiry());
    }
    if (one.held_row != nullptr) return release_row(one.key, one.held_row->seen, intent_on(*one.held_row));
    if (one.held == nullptr) return finalise_slot(one.key, claim_.tx);
    if (!one.held->payload) return undo(one);
    return commit_pending_slot(one.key, {.write_id = claim_.tx, .payload = *one.held->payload});
}

store::Write Attempt::undo(const Participant& one) const {
    if (one.held_row != nullptr) return undo_row(one.key, one.held_row->seen, intent_on(*one.held_row));
    if (one.row == nullptr) return undo_slot(one.key, claim_.tx, one.epoch);
    const RowWrite& row = *one.row;
    return undo_row(one.key, row.seen, {.claim = claim_, .after = row.after, .was_expires = row.seen.expires});
}

Intent Attempt::intent_on(const HeldRow& row) const {
    return {.claim = claim_, .after = {}, .was_expires = row.seen.expires, .reserved = true};
}

void Attempt::undo_prepared() {
    try {
        // A prepare may still be on its way: fenced, it is undone at sight instead of after its lease.
        if (prepare_unanswered_) c_.resolver_.end(claim_);
        std::vector<store::Write> undoes;
        for (const Participant& one : participants_) {
            if (one.maybe_prepared) undoes.push_back(undo(one));
        }
        if (!undoes.empty()) c_.let_go(std::move(undoes));
    } catch (const Error& error) {
        c_.runtime_.log.write(LogLevel::info, std::string{"an aborted transaction is left to others: "} + error.what());
    }
}

}  // namespace varve::transactions
