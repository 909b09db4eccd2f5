#include "core/planted_faults.h"
#include "transactions/commit/committer.h"

#include <varve/core/error.h>

#include <algorithm>

// One request: a single conditional write of a slot, or the store's atomic one.

namespace varve::transactions {

std::variant<Conflict, Commit> Committer::write_in_one_request(Path path) {
    // Of the requests so far, one was not answered, or was refused by what may pass: it may still get through,
    // since any request may arrive again.
    bool may_get_through = false;
    for (;;) {
        std::vector<store::Write> writes;
        for (const Participant& participant : participants_) writes.push_back(final_write(participant));
        add_checks(writes);
        asked_by_ = path;
        const store::AtomicAnswer answer =
            path == Path::native ? write_all(std::move(writes)) : write_one(writes.front());

        if (std::holds_alternative<store::Applied>(answer)) return committed(path);
        bool alive = false;
        bool unanswered = false;
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            may_get_through = may_get_through || failure->in_doubt;
            unanswered = true;
            if (!worth_repeating(*failure) || answers_are_overdue()) {
                // What is too much for one request is not for the many of the protocol.
                const bool has_room = path != Path::native || failure->kind != ErrorKind::invalid;
                if (!may_get_through && !has_room) {
                    if (primary_is_a_row()) take_primary_of_its_own();
                    return run_protocol();
                }
                if (!may_get_through) raise(*failure);
                return learn_outcome(path, failure->message);
            }
        } else {
            std::optional<Obstacle> worst;
            try {
                worst = meet_all(std::get<store::RefusedBatch>(answer).refused);
            } catch (const Error& error) {
                return learn_outcome(path, error.what());
            }
            if (!worst) return committed(path);
            if (*worst == Obstacle::moved) {
                // A slot keeps what is in it, and a row's revision never comes back: no request of ours can succeed any
                // more.
                if (primary_is_a_row()) check_that_rows_remember();
                return conflict();
            }
            may_get_through = true;
            alive = *worst == Obstacle::alive;
        }
        if (!another_round({.somebody_is_alive = alive, .unanswered = unanswered}))
            return may_get_through ? learn_outcome(path, met_) : conflict();
    }
}

store::AtomicAnswer Committer::write_all(std::vector<store::Write> writes) {
    if (is_announced()) writes.push_back(bell());  // last, so that refusals name participants by their index
    store::AtomicAnswer answer = coordinator_.store_.write_atomically(writes);
    if (std::holds_alternative<store::Applied>(answer)) rung_for_ = primary().epoch;
    return answer;
}

store::AtomicAnswer Committer::write_one(const store::Write& write) {
    store::WriteAnswer answer = write_and_ring(write);
    if (auto* refused = std::get_if<store::Refused>(&answer)) {
        return store::RefusedBatch{{{.index = 0, .current = std::move(refused->current)}}};
    }
    if (auto* failure = std::get_if<Failure>(&answer)) return std::move(*failure);
    return store::Applied{};
}

store::Write Committer::final_write(const Participant& participant) {
    if (participant.row == nullptr) {
        return commit_free_slot(participant.key, participant.epoch,
                                {.write_id = claim_.tx, .payload = payload(participant)});
    }
    Image image{.data = participant.row->after, .rev = claim_.tx};
    if (!image.data) image.expires = coordinator_.resolver_.tombstone_expiry();
    if (&participant == &primary()) image.writers = writers_after(participant.row->seen);
    return write_row(participant.key, participant.row->seen, image);
}

void Committer::add_checks(std::vector<store::Write>& writes) const {
    if (planted(PlantedFault::what_a_native_transaction_read_is_not_checked)) return;
    for (const HeadRead& read : plan_.heads_read) writes.push_back({read.next, store::Check{}, free_at_any_epoch()});
    for (const RowRead& read : plan_.rows_read) writes.push_back({read.key, store::Check{}, unclaimed_at(read.rev)});
}

std::optional<Obstacle> Committer::meet_all(const std::vector<store::RefusedBatch::One>& refused) {
    Obstacle worst = Obstacle::cleared;
    for (const auto& [index, current] : refused) {
        if (index < participants_.size()) {
            const Obstacle obstacle = meet(participants_[index], current);
            if (obstacle == Obstacle::none) return std::nullopt;
            worst = std::max(worst, obstacle);
            continue;
        }
        const std::size_t check = index - participants_.size();
        if (check < plan_.heads_read.size()) {
            worst = std::max(worst, meet_head_read(plan_.heads_read[check], current));
        } else if (check < plan_.heads_read.size() + plan_.rows_read.size()) {
            const RowRead& read = plan_.rows_read[check - plan_.heads_read.size()];
            worst = std::max(worst, meet_row_read(read.key, read.rev, current));
        } else {
            worst = std::max(worst, moved(bell().key, "is not of this library"));  // the next attempt has another bell
        }
    }
    return worst;
}

}  // namespace varve::transactions
