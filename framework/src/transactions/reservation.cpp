#include <varve/core/error.h>
#include <varve/transactions/reservation.h>

#include <utility>

namespace varve::transactions {

Reservation::Reservation(Coordinator& coordinator, const std::string& tx, Time since)
    : c_(coordinator), since_(since), tx_(tx) {}

Reservation::~Reservation() {
    if (handed_over_ || undoes_.empty()) return;
    try {
        std::vector<store::Write> undoes;
        for (auto& [key, undo] : undoes_) undoes.push_back(std::move(undo));
        // Not yet asked to commit, it never will: letting go is safe without a fence. What fails here, others do.
        static_cast<void>(c_.store().write(undoes));
    } catch (...) {
        // A destructor has nobody to tell. Whoever meets the reservation ends it.
    }
}

Claim Reservation::claim() const {
    return {.tx = tx_,
            .primary = slot_key(transaction_stream(tx_), 1),
            .primary_epoch = 0,
            .lease = c_.runtime().clock.get().now() + c_.options().lease,
            .priority = since_};
}

bool Reservation::is_alive() const {
    return c_.resolver().look(claim()).verdict == Verdict::undecided;
}

void Reservation::hold(const std::string& stream) {
    if (held_.contains(stream)) return;
    SettledReader reader{c_, tx_, since_, [this] { renew_leases(); }};
    Backoff unanswered{RetryPolicy::waiting(c_.options().answer_time_max), c_.runtime()};
    const SteadyTime until = c_.runtime().clock.get().steady_now() + c_.options().lease;
    StreamRead read = reader.head(stream);
    bool at_the_head = true;
    while (!read.mine) {
        renew_leases();
        const store::Key key = slot_key(stream, read.head + 1);
        const store::WriteAnswer answer = reserve(key, read.next.epoch);
        if (std::holds_alternative<store::Applied>(answer)) break;
        if (const auto* refused = std::get_if<store::Refused>(&answer)) {
            if (c_.runtime().clock.get().steady_now() >= until) {
                throw BlockedError("stream '" + stream + "' has moved on for a whole lease, at last to version " +
                                       std::to_string(read.head + 1) + ", faster than it could be reserved",
                                   lost_at(key));
            }
            // What refused it is the stream's new head, if all goes well: to read that first would lose most races
            // against writers who know the head because they wrote it. Who has fallen behind, though, would run after
            // it for ever at the speed of the writers.
            const bool has_moved = std::holds_alternative<Committed>(decode_slot(key, refused->current));
            if (std::exchange(at_the_head, false) && has_moved) {
                ++read.head;
                read.next = {};
                continue;
            }
        } else {
            // The next read tells whether it got through.
            const auto& failure = std::get<Failure>(answer);
            if (!worth_repeating(failure) || !unanswered.next()) raise_certain(failure);
        }
        // Perhaps somebody fenced this transaction and cleared its slot: reserving again for it would only be undone
        // again.
        if (!is_alive()) {
            throw BlockedError("the reservation of stream '" + stream + "' was ended by somebody else", lost_at(key));
        }
        read = reader.head(stream);
        at_the_head = true;
    }
    held_.emplace(stream, HeldSlot{.key = slot_key(stream, read.head + 1), .epoch = read.next.epoch, .payload = {}});
}

store::WriteAnswer Reservation::reserve(const store::Key& key, Epoch epoch) {
    if (held_.empty()) renew_at_ = c_.runtime().clock.get().steady_now() + c_.options().lease / 2;
    const store::Write write = reserve_slot(key, epoch, claim());
    store::WriteAnswer answer = c_.store().write({&write, 1}).front();
    // What was refused by another's slot can never be applied later: that slot is not free at this epoch again.
    const auto* refused = std::get_if<store::Refused>(&answer);
    const bool is_others =
        refused != nullptr && !(refused->current && store::holds(claimed_by(tx_), &*refused->current));
    if (!is_others) undoes_.insert_or_assign(key, undo_slot(key, tx_, epoch));
    return answer;
}

void Reservation::renew_leases() {
    const SteadyTime now = c_.runtime().clock.get().steady_now();
    if (held_.empty() || now < renew_at_) return;
    renew_at_ = now + c_.options().lease / 2;
    std::vector<store::Write> renewals;
    for (const auto& [stream, slot] : held_) renewals.push_back(renew_slot(slot.key, claim()));
    // Without an answer, or refused because somebody has ended it: the commit will find out.
    static_cast<void>(c_.store().write(renewals));
}

void Reservation::hand_over() {
    renew_leases();
    handed_over_ = true;
}

}  // namespace varve::transactions
