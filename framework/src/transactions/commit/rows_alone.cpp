#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/commit/committer.h"
#include "transactions/ended_writes.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

// Rows and nothing else: one conditional write of one row, or one atomic request over several. It leaves its id in one
// of them, which tells the outcome as a primary does. A late copy of the request is refused by that row, for it goes
// upon a revision there, which never comes back.

namespace varve::transactions {

bool Committer::lay_tombstone() {
    // Absent is what the row will be again when its tombstone is gone, and then a late request upon that would be
    // applied once more. The tombstone's revision is sent once, and so never comes back when the row has moved on from
    // it: a repeat takes another one.
    const store::Key& key = primary().key;
    for (;;) {
        Image tombstone{.rev = uuid7(coordinator_.runtime_), .expires = coordinator_.resolver_.tombstone_expiry()};
        const store::Write write = write_row(key, primary().row->seen, tombstone);
        const store::WriteAnswer answer = coordinator_.store_.write({&write, 1}).front();
        Round round{.somebody_is_alive = false, .unanswered = false};
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            met_ = "the store did not answer: " + failure->message;
            if (!worth_repeating(*failure) || answers_are_overdue()) raise_certain(*failure);
            round.unanswered = true;
        } else {
            Row row{.image = std::move(tombstone), .intent = {}};
            if (const auto* refused = std::get_if<store::Refused>(&answer)) {
                row = decode_row(key, refused->current);
                if (row.image.data) {
                    moved(key, "was written by somebody else");
                    return false;
                }
                round.somebody_is_alive = row.intent && meet_claim(key, *refused->current) == Obstacle::alive;
            }
            if (row.image.rev && !row.intent) {  // anybody's tombstone is as absent as what the plan was decided on
                upon_tombstone_ = {.key = key, .seen = std::move(row.image), .after = primary().row->after};
                primary().row = &*upon_tombstone_;
                return true;
            }
        }
        if (!another_round(round)) return false;
    }
}

Writers Committer::writers_after(const Image& seen) const {
    const auto seconds = [](Time time) {
        return std::chrono::ceil<std::chrono::seconds>(time).time_since_epoch().count();
    };
    const Time now = coordinator_.runtime_.clock.get().now();
    VARVE_ASSERT(!claim_.tx.empty(), "every writer has an id");
    Writers writers = planted(PlantedFault::a_row_remembers_its_last_writer_only) ? Writers{} : seen.writers;
    std::erase_if(writers, [&](const auto& writer) {
        return writer.second < seconds(now) || coordinator_.ended_writes_->contains(writer.first);
    });
    writers.emplace(claim_.tx, seconds(now + coordinator_.options_.retention));
    return writers;
}

bool Committer::is_written(const Row& row) const {
    if (row.image.rev == claim_.tx) return true;
    return row.image.writers.contains(claim_.tx) && !planted(PlantedFault::only_a_rows_last_writer_is_recognised);
}

void Committer::check_that_rows_remember() {
    // By half of the retention others' clocks may be ahead.
    const bool remembered =
        coordinator_.runtime_.clock.get().steady_now() < began_ + coordinator_.options_.retention / 2;
    if (!remembered) throw_in_doubt("the row has been written again, and may have forgotten since who wrote it before");
}

bool Committer::ask_row() {
    if (planted(PlantedFault::a_row_is_not_fenced_when_its_writer_gives_up)) return false;
    const store::Key& key = primary().key;
    VARVE_ASSERT(is_there(primary()), "a row that tells was written upon a revision");
    const store::Write write = fence_row(key, primary().row->seen.rev.value(), uuid7(coordinator_.runtime_));
    for (Backoff backoff{retry_policy(), coordinator_.runtime_};;) {
        const store::WriteAnswer answer = coordinator_.store_.write({&write, 1}).front();
        if (std::holds_alternative<store::Applied>(answer)) return false;
        if (const auto* refused = std::get_if<store::Refused>(&answer)) {
            if (is_written(decode_row(key, refused->current))) return true;
            check_that_rows_remember();
            return false;
        }
        const auto& failure = std::get<Failure>(answer);
        if (!worth_repeating(failure) || !backoff.next()) throw_in_doubt(failure.message);
    }
}

}  // namespace varve::transactions
