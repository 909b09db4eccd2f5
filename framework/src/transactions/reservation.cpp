#include "transactions/reservation.h"

#include "core/assert.h"
#include "transactions/read_patiently.h"

#include <varve/core/error.h>

#include <algorithm>
#include <utility>

namespace varve::transactions {
namespace {

constexpr unsigned misses_together_max = 3;

}  // namespace

Reservation::Reservation(Coordinator& coordinator, const std::string& tx, Time since, SteadyTime until)
    : coordinator_(coordinator),
      since_(since),
      until_(until),
      tx_(tx),
      patience_(coordinator.resolver(), coordinator.metrics(), {since, tx}) {}

Reservation::~Reservation() {
    if (handed_over_ || undoes_.empty()) return;
    try {
        // Not yet asked to commit, it never will: letting go is safe without a fence.
        std::vector<store::Write> undoes;
        for (auto& [key, undo] : undoes_) undoes.push_back(std::move(undo));
        coordinator_.let_go(std::move(undoes));
    } catch (...) {
        // A destructor has nobody to tell. Whoever meets the reservation ends it.
    }
}

Claim Reservation::claim() const {
    return {.tx = tx_,
            .primary = slot_key(transaction_stream(tx_), 1),
            .primary_epoch = 0,
            .lease = coordinator_.runtime().clock.get().now() + coordinator_.options().lease,
            .priority = since_,
            .lease_length = coordinator_.options().lease};
}

bool Reservation::is_alive() const {
    return read_patiently(coordinator_, until_, [&] { return coordinator_.resolver().look(claim()); }).verdict ==
           Verdict::undecided;
}

void Reservation::hold(const Wanted& wanted) {
    std::vector<Open> open;
    for (const auto& [stream, known] : wanted.streams) {
        if (streams_.contains(stream)) continue;
        open.push_back({.stream = stream,
                        .key = slot_key(stream, known.head + 1),
                        .epoch = known.epoch,
                        .is_known = !wanted.is_long_ago});
    }
    for (const auto& [key, seen] : wanted.rows) {
        if (!rows_.contains(key)) open.push_back({.key = key, .seen = seen, .is_known = !wanted.is_long_ago});
    }
    const auto first = std::ranges::find_if(open, [&](const Open& one) {
        return one.stream.empty() ? lost_at(one.key).item == wanted.first.item : one.stream == wanted.first.stream;
    });
    const bool first_alone = first != open.end() && !holds_anything();
    if (first_alone) std::swap(*first, open.front());
    hold(std::move(open), first_alone);
}

const HeldSlot& Reservation::hold(const std::string& stream) {
    if (!streams_.contains(stream)) hold({{.stream = stream, .is_known = false}}, false);
    const auto held = streams_.find(stream);
    VARVE_ASSERT(held != streams_.end(), "what was reserved is held");
    return held->second;
}

const Image& Reservation::hold(const store::Key& row) {
    if (!rows_.contains(row)) hold({{.key = row, .is_known = false}}, false);
    const auto held = rows_.find(row);
    VARVE_ASSERT(held != rows_.end(), "what was reserved is held");
    return held->second;
}

void Reservation::look_at(std::span<Open> open) const {
    std::vector<Open*> rows;
    std::vector<Open*> streams;
    std::vector<store::Key> keys;
    std::vector<store::Query> newest;
    for (Open& one : open) {
        if (std::exchange(one.is_known, true)) continue;
        if (one.stream.empty()) {
            rows.push_back(&one);
            keys.push_back(one.key);
        } else {
            streams.push_back(&one);
            newest.push_back({.table = events_table().name,
                              .partition = one.stream,
                              .first = Version{1},
                              .descending = true,
                              .limit = 1});
        }
    }
    if (keys.empty() && newest.empty()) return;
    store::FoundTogether found =
        read_patiently(coordinator_, until_, [&] { return coordinator_.store().read_together(keys, newest); });
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i]->seen = decode_row(keys[i], std::move(found.items[i])).image;
    }
    // Who has a claim there is met by the write.
    for (std::size_t i = 0; i < streams.size(); ++i) {
        Open& one = *streams[i];
        store::Page& page = found.pages[i];
        while (page.records.empty() && page.next) {
            newest[i].next = std::move(page.next);
            page = read_patiently(coordinator_, until_, [&] { return coordinator_.store().query(newest[i]); });
        }
        one.key = slot_key(one.stream, 1);
        one.epoch = 0;
        if (page.records.empty()) continue;
        const auto& [key, item] = page.records.front();
        const Slot slot = decode_slot(key, item);
        one.key = std::holds_alternative<Committed>(slot) ? slot_key(one.stream, version_of(key) + 1) : key;
        if (const auto* free = std::get_if<Free>(&slot)) one.epoch = free->epoch;
    }
}

void Reservation::hold(std::vector<Open> open, bool first_alone) {
    const SteadyTime until =
        std::min(until_, coordinator_.runtime().clock.get().steady_now() + coordinator_.wait_max());
    Backoff waiting{RetryPolicy::waiting(until - coordinator_.runtime().clock.get().steady_now()),
                    coordinator_.runtime()};
    Backoff unanswered{RetryPolicy::waiting(coordinator_.options().answer_time_max), coordinator_.runtime()};
    while (!open.empty()) {
        renew_leases();
        const Claim claim = this->claim();
        if (!holds_anything())
            renew_at_ = coordinator_.runtime().clock.get().steady_now() + coordinator_.options().lease / 2;
        // What others write to all the time is run after alone: a batch with more in it may take longer than they do.
        const auto hottest = std::ranges::max_element(open, {}, &Open::misses);
        const bool is_hot = hottest->misses >= misses_together_max;
        if (is_hot) std::swap(*hottest, open.front());
        const std::size_t count = is_hot || (first_alone && !holds_anything()) ? 1 : open.size();
        look_at(std::span{open}.first(count));
        std::vector<store::Write> writes;
        for (std::size_t i = 0; i < count; ++i) {
            writes.push_back(write(open[i], claim));
            undoes_.insert_or_assign(open[i].key, undo(open[i]));
        }
        const std::vector<store::WriteAnswer> answers = coordinator_.store().write(writes);
        VARVE_ASSERT(answers.size() == writes.size(), "a store answers every write of a batch");

        bool found_a_void = false;
        bool somebody_is_alive = false;
        const Failure* failure = nullptr;
        std::vector<Open> left;
        std::vector<Resolver::Claimed> claims;
        for (std::size_t i = 0; i < count; ++i) {
            Open& one = open[i];
            const auto* refused = std::get_if<store::Refused>(&answers[i]);
            if (const auto* failed = std::get_if<Failure>(&answers[i])) {
                failure = failed;
                one.is_in_doubt = true;  // the next write tells whether it got through
            } else if (refused == nullptr) {
                take(one);
                continue;
            } else {
                const std::optional<Claim> found =
                    refused->current ? claim_on(one.key, *refused->current) : std::nullopt;
                if (found && found->tx == tx_) {
                    take_as_found(one, *refused->current);
                    continue;
                }
                if (!one.is_in_doubt) undoes_.erase(one.key);
                if (found) {
                    claims.push_back({one.key, *refused->current});
                } else {
                    found_a_void = follow(one, refused->current) || found_a_void;
                }
            }
            left.push_back(one);
        }
        const std::vector<Verdict> verdicts = patience_.settle(claims);
        for (std::size_t i = 0; i < claims.size(); ++i) {
            if (verdicts[i] != Verdict::undecided) continue;
            somebody_is_alive = true;
            // It may be waiting for what is held here.
            if (holds_anything() && patience_.is_outranked(claim_there(claims[i].key, claims[i].item))) {
                throw BlockedError(store::to_string(claims[i].key) + " is held by an older transaction",
                                   lost_at(claims[i].key));
            }
        }
        std::move(open.begin() + static_cast<std::ptrdiff_t>(count), open.end(), std::back_inserter(left));
        open = std::move(left);

        if (failure != nullptr && (!worth_repeating(*failure) || !unanswered.next())) raise_certain(*failure);
        // Perhaps somebody fenced this transaction and cleared its slot: reserving again for it would only be undone
        // again.
        if (found_a_void && !is_alive()) {
            throw BlockedError(
                "the reservation of " + store::to_string(open.front().key) + " was ended by somebody else",
                lost_at(open.front().key));
        }
        if (somebody_is_alive && !waiting.next()) {
            throw BlockedError("what is to be reserved, " + store::to_string(open.front().key) +
                                   ", is held by another transaction that is still running",
                               lost_at(open.front().key));
        }
        if (!open.empty() && !somebody_is_alive && coordinator_.runtime().clock.get().steady_now() >= until) {
            throw BlockedError(store::to_string(open.front().key) +
                                   " and what was before it moved on for a whole lease, faster than it could be "
                                   "reserved",
                               lost_at(open.front().key));
        }
    }
}

store::Write Reservation::write(const Open& one, const Claim& claim) const {
    return one.stream.empty() ? reserve_row(one.key, one.seen, claim) : reserve_slot(one.key, one.epoch, claim);
}

store::Write Reservation::undo(const Open& one) const {
    return one.stream.empty()
               ? undo_row(one.key, one.seen, {.claim = claim(), .after = {}, .was_expires = one.seen.expires})
               : undo_slot(one.key, tx_, one.epoch);
}

void Reservation::take(Open& one) {
    VARVE_ASSERT(undoes_.contains(one.key), "whoever holds something knows how to let go of it");
    VARVE_ASSERT(one.stream.empty() ? !rows_.contains(one.key) : !streams_.contains(one.stream),
                 "nothing is reserved twice");
    if (one.stream.empty()) {
        rows_.emplace(one.key, std::move(one.seen));
    } else {
        streams_.emplace(one.stream, HeldSlot{.key = one.key, .epoch = one.epoch, .payload = {}});
    }
}

void Reservation::take_as_found(Open& one, const store::Item& current) {
    if (one.stream.empty()) {
        Row row = decode_row(one.key, current);
        one.seen = std::move(row.image);
    } else {
        one.epoch = pending_slot(one.key, decode_slot(one.key, current)).epoch;
    }
    undoes_.insert_or_assign(one.key, undo(one));
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
        return one.is_in_doubt;
    }
    // What refused it is the stream's new head, if all goes well: to read that first would lose most races against
    // writers who know the head because they wrote it. Who has fallen behind, though, would run after it for ever at
    // the speed of the writers.
    one.key = slot_key(one.stream, version_of(one.key) + 1);
    one.is_known = ++one.misses % 2 != 0;
    one.is_in_doubt = false;
    one.epoch = 0;
    return false;
}

void Reservation::renew_leases() {
    const SteadyTime now = coordinator_.runtime().clock.get().steady_now();
    if (!holds_anything() || now < renew_at_) return;
    renew_at_ = now + coordinator_.options().lease / 2;
    std::vector<store::Write> renewals;
    for (const auto& [stream, slot] : streams_) renewals.push_back(renew_slot(slot.key, claim()));
    for (const auto& [key, image] : rows_) renewals.push_back(renew_row(key, claim()));
    // Without an answer, or refused because somebody has ended it: the commit will find out.
    static_cast<void>(coordinator_.store().write(renewals));
}

void Reservation::hand_over() {
    renew_leases();
    handed_over_ = true;
}

}  // namespace varve::transactions
