#include "finaliser.h"
#include "mutants.h"

#include <varve/core/error.h>
#include <varve/transactions/reservation.h>

#include <utility>

namespace varve::transactions {

Reservation::Reservation(Coordinator& coordinator, const std::string& tx, Time since)
    : c_(coordinator), since_(since), tx_(tx), patience_(coordinator.resolver(), coordinator.metrics(), {since, tx}) {}

Reservation::~Reservation() {
    if (handed_over_ || undoes_.empty()) return;
    try {
        // Not yet asked to commit, it never will: letting go is safe without a fence.
        std::vector<store::Write> undoes;
        for (auto& [key, undo] : undoes_) undoes.push_back(std::move(undo));
        c_.let_go(std::move(undoes));
    } catch (...) {
        // A destructor has nobody to tell. Whoever meets the reservation ends it.
    }
}

Claim Reservation::claim() const {
    return {.tx = tx_,
            .primary = slot_key(transaction_stream(tx_), 1),
            .primary_epoch = 0,
            .lease = c_.runtime().clock.now() + c_.options().lease,
            .priority = since_};
}

bool Reservation::is_alive() const {
    return c_.resolver().look(claim()).verdict == Verdict::undecided;
}

void Reservation::hold(const Wanted& wanted) {
    std::vector<Open> open;
    for (const auto& [stream, known] : wanted.streams) {
        if (streams_.contains(stream)) continue;
        open.push_back({.stream = stream, .key = slot_key(stream, known.head + 1), .epoch = known.epoch});
    }
    for (const auto& [key, seen] : wanted.rows) {
        if (!rows_.contains(key)) open.push_back({.key = key, .seen = seen});
    }
    hold(std::move(open));
}

const HeldSlot& Reservation::hold(const std::string& stream) {
    if (!streams_.contains(stream)) hold({{.stream = stream, .key = head(stream), .epoch = 0}});
    return streams_.at(stream);
}

const Image& Reservation::hold(const store::Key& row) {
    if (!rows_.contains(row)) hold({{.key = row, .seen = decode_row(row, c_.store().read({&row, 1}).front()).image}});
    return rows_.at(row);
}

/// Where to reserve: after the head, or where the head is not finalised yet, at which the write will stop.
store::Key Reservation::head(const std::string& stream) const {
    const StreamRead read = c_.reader().head(stream);
    return slot_key(stream, read.unfinalised ? read.head : read.head + 1);
}

void Reservation::hold(std::vector<Open> open) {
    Backoff waiting{RetryPolicy::waiting(c_.options().lease), c_.runtime()};
    Backoff unanswered{RetryPolicy::waiting(c_.options().answer_time_max), c_.runtime()};
    const SteadyTime until = c_.runtime().clock.steady_now() + c_.options().lease;
    while (!open.empty()) {
        renew_leases();
        const Claim claim = this->claim();
        if (!holds_anything()) renew_at_ = c_.runtime().clock.steady_now() + c_.options().lease / 2;
        std::vector<store::Write> writes;
        // Whoever wants the same queues for the first of it, instead of holding parts of it against each other.
        const std::size_t count = holds_anything() ? open.size() : 1;
        for (std::size_t i = 0; i < count; ++i) writes.push_back(write(open[i], claim));
        const std::vector<store::WriteAnswer> answers = c_.store().write(writes);

        bool found_a_void = false;
        const Failure* failure = nullptr;
        std::vector<Open> left;
        std::vector<std::size_t> claimed;  // of these
        std::vector<Resolver::Claimed> claims;
        for (std::size_t i = 0; i < count; ++i) {
            Open& one = open[i];
            const auto* refused = std::get_if<store::Refused>(&answers[i]);
            if (const auto* failed = std::get_if<Failure>(&answers[i])) {
                failure = failed;
                undoes_.insert_or_assign(one.key, undo(one));  // the next write tells whether it got through
            } else if (refused == nullptr) {
                take(one);
                continue;
            } else {
                one.over.reset();
                const std::optional<Claim> claim =
                    refused->current ? claim_on(one.key, *refused->current) : std::nullopt;
                if (claim && claim->tx == tx_) {
                    take_as_found(one, *refused->current);
                    continue;
                }
                if (claim) {
                    claimed.push_back(left.size());
                    claims.push_back({one.key, *refused->current});
                } else {
                    found_a_void = follow(one, refused->current) || found_a_void;
                }
            }
            left.push_back(one);
        }
        const std::vector<Verdict> verdicts = patience_.make_way(claims);
        bool somebody_is_alive = false;
        for (std::size_t i = 0; i < claims.size(); ++i) {
            if (verdicts[i] == Verdict::aborted) write_over(left[claimed[i]], claims[i].item);
            somebody_is_alive = somebody_is_alive || verdicts[i] == Verdict::undecided;
        }
        left.insert(left.end(), open.begin() + static_cast<std::ptrdiff_t>(count), open.end());
        open = std::move(left);

        if (failure != nullptr && (!worth_repeating(*failure) || !unanswered.next())) raise_certain(*failure);
        // Perhaps somebody fenced this transaction and cleared its slot: reserving again for it would only be undone
        // again.
        if (found_a_void && !is_alive()) {
            throw BlockedError("the reservation of " + store::to_string(open.front().key) +
                               " was ended by somebody else");
        }
        if (somebody_is_alive && !waiting.next()) {
            throw BlockedError("what is to be reserved, " + store::to_string(open.front().key) +
                               " or what follows it, is held by another transaction that is still running");
        }
        if (!open.empty() && !somebody_is_alive && c_.runtime().clock.steady_now() >= until) {
            throw BlockedError(store::to_string(open.front().key) +
                               " and what was before it moved on for a whole lease, faster than it could be reserved");
        }
    }
}

store::Write Reservation::write(const Open& one, const Claim& claim) const {
    return one.stream.empty() ? reserve_row(one.key, one.seen, claim, one.over)
                              : reserve_slot(one.key, one.epoch, claim, one.over);
}

store::Write Reservation::undo(const Open& one) const {
    return one.stream.empty()
               ? undo_row(one.key, one.seen, {.claim = claim(), .after = {}, .was_expires = one.seen.expires})
               : undo_slot(one.key, tx_, one.epoch);
}

void Reservation::take(Open& one) {
    undoes_.insert_or_assign(one.key, undo(one));
    if (one.stream.empty()) {
        rows_.emplace(one.key, std::move(one.seen));
    } else {
        streams_.emplace(one.stream, HeldSlot{.key = one.key, .epoch = one.epoch, .payload = {}});
    }
}

void Reservation::take_as_found(Open& one, const store::Item& current) {
    if (one.stream.empty()) {
        const Row row = decode_row(one.key, current);
        one.seen = row.image;
        one.seen.expires = row.intent.value().was_expires;
    } else {
        one.epoch = std::get<Pending>(decode_slot(one.key, current)).epoch;
    }
    take(one);
}

bool Reservation::follow(Open& one, const std::optional<store::Item>& current) {
    if (one.stream.empty()) {
        one.seen = decode_row(one.key, current).image;
        return false;
    }
    const Slot slot = decode_slot(one.key, current);
    if (const auto* free = std::get_if<Free>(&slot)) {
        one.epoch = free->epoch;
        one.has_moved = false;
        return true;
    }
    // What refused it is the stream's new head, if all goes well: to read that first would lose most races against
    // writers who know the head because they wrote it. Who has fallen behind, though, would run after it for ever at the
    // speed of the writers.
    one.key = one.has_moved ? head(one.stream) : slot_key(one.stream, version_of(one.key) + 1);
    one.has_moved = !one.has_moved;
    one.epoch = 0;
    return false;
}

void Reservation::write_over(Open& one, const store::Item& current) {
    const Claim claim = claim_on(one.key, current).value();
    if (one.stream.empty()) {
        const Row row = decode_row(one.key, current);
        one.seen = row.image;
        one.seen.expires = row.intent.value().was_expires;
    } else {
        one.epoch = std::get<Pending>(decode_slot(one.key, current)).epoch + 1;
    }
    if (claim.primary != one.key) one.over = claim.tx;  // else it has become void
}

void Reservation::renew_leases() {
    const SteadyTime now = c_.runtime().clock.steady_now();
    if (!holds_anything() || now < renew_at_) return;
    renew_at_ = now + c_.options().lease / 2;
    std::vector<store::Write> renewals;
    for (const auto& [stream, slot] : streams_) renewals.push_back(renew_slot(slot.key, claim()));
    for (const auto& [key, image] : rows_) renewals.push_back(renew_row(key, claim()));
    // Without an answer, or refused because somebody has ended it: the commit will find out.
    static_cast<void>(c_.store().write(renewals));
}

void Reservation::hand_over() {
    renew_leases();
    handed_over_ = true;
}

}  // namespace varve::transactions
