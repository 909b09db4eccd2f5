#include "core/assert.h"
#include "core/planted_faults.h"
#include "transactions/commit/committer.h"
#include "transactions/ended_writes.h"

#include <varve/core/error.h>
#include <varve/core/ids.h>

// A single row and nothing else: one conditional write, which leaves its id in the row.

namespace varve::transactions {

std::variant<Conflict, Commit> Committer::write_plain_row() {
    const store::Key& key = primary().key;
    // Nothing is written upon an absent row, for absent is what it will be again when its tombstone is gone, and then
    // a late request of ours would be applied once more. A tombstone goes there first. Its revision is sent once, and
    // so never comes back when the row has moved on from it: a repeat takes another one.
    std::optional<std::string> base = primary().row->seen.rev;
    Image after{.data = primary().row->after, .rev = claim_.tx, .writers = writers_after(primary().row->seen)};
    if (!after.data) after.expires = coordinator_.resolver_.tombstone_expiry();
    bool may_get_through = false;
    for (;;) {
        const Image written =
            base ? after
                 : Image{.rev = uuid7(coordinator_.runtime_), .expires = coordinator_.resolver_.tombstone_expiry()};
        const bool final = written.rev == after.rev;
        VARVE_ASSERT(final == base.has_value(), "a row's own write goes upon a revision");
        const store::Write write = write_row(key, {.rev = base}, written);
        if (final) asked_by_ = Path::single;
        store::WriteAnswer answer = coordinator_.store_.write({&write, 1}).front();

        Round round{.somebody_is_alive = false, .unanswered = false};
        if (std::holds_alternative<store::Applied>(answer)) {
            if (final) return row_written();
            base = written.rev;
            continue;
        }
        if (const auto* failure = std::get_if<Failure>(&answer)) {
            may_get_through = may_get_through || (final && failure->in_doubt);
            met_ = "the store did not answer: " + failure->message;
            if (!worth_repeating(*failure) || answers_are_overdue()) {
                VARVE_ASSERT(!may_get_through || base, "what may get through was sent upon a revision");
                if (may_get_through) return end_plain_row(*base);
                if (final) raise(*failure);
                raise_certain(*failure);
            }
            round.unanswered = true;
        } else {
            const std::optional<store::Item>& current = std::get<store::Refused>(answer).current;
            const Row row = decode_row(key, current);
            // Others may have written since, also before this answer, if it is that of a request's second delivery.
            if (current && has_a_double(primary(), *current)) {
                moved(key, "was written by another transaction of the same id");
                return conflict();
            }
            if (knows(row)) return row_written();
            may_get_through = may_get_through || final;
            if (!base && row.image.rev && !row.image.data && !row.intent) {
                base = row.image.rev;  // another tombstone: as absent as what the plan was decided on
                after.writers = writers_after(row.image);
                continue;
            }
            if (row.image.rev != base) {
                moved(key, "was written by somebody else");
                return may_get_through ? row_moved_on() : conflict();
            }
            try {
                round.somebody_is_alive = row.intent && meet_claim(key, *current) == Obstacle::alive;
            } catch (const Error& error) {
                if (!may_get_through) throw;
                met_ = error.what();
                return end_plain_row(*base);
            }
        }
        if (!another_round(round)) return may_get_through ? end_plain_row(*base) : conflict();
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

bool Committer::knows(const Row& row) const {
    if (planted(PlantedFault::only_a_rows_last_writer_is_recognised)) return row.image.rev == claim_.tx;
    return row.image.writers.contains(claim_.tx);
}

std::variant<Conflict, Commit> Committer::row_written() {
    coordinator_.ended_writes_->add(claim_.tx);
    return committed(Path::single);
}

bool Committer::row_is_full() const {
    return writers_after(plan_.rows.front().seen).size() > writers_max;
}

std::variant<Conflict, Commit> Committer::row_moved_on() {
    // Later than that, the row may have forgotten this attempt; by half of it others' clocks may be ahead.
    const bool remembered =
        coordinator_.runtime_.clock.get().steady_now() < began_ + coordinator_.options_.retention / 2;
    if (!remembered) throw_in_doubt("the row has been written again, and may have forgotten since who wrote it before");
    return conflict();
}

std::variant<Conflict, Commit> Committer::end_plain_row(const std::string& base) {
    if (planted(PlantedFault::a_row_is_not_fenced_when_its_writer_gives_up)) return conflict();
    const store::Key& key = primary().key;
    const store::Write write = fence_row(key, base, uuid7(coordinator_.runtime_));
    for (Backoff backoff{retry_policy(), coordinator_.runtime_};;) {
        const store::WriteAnswer answer = coordinator_.store_.write({&write, 1}).front();
        if (std::holds_alternative<store::Applied>(answer)) return conflict();
        if (const auto* refused = std::get_if<store::Refused>(&answer)) {
            return knows(decode_row(key, refused->current)) ? row_written() : row_moved_on();
        }
        const auto& failure = std::get<Failure>(answer);
        if (!worth_repeating(failure) || !backoff.next()) throw_in_doubt(failure.message);
    }
}

}  // namespace varve::transactions
