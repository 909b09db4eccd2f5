#include <varve/core/error.h>
#include <varve/transactions/reservation.h>

namespace varve::transactions {

Reservation::Reservation(Coordinator& coordinator, const std::string& tx, Time since)
    : c_(coordinator),
      since_(since),
      tx_(tx),
      reader_(coordinator, tx, since),
      unanswered_(waiting(coordinator.options().answer_time_max), coordinator.runtime()) {}

Reservation::~Reservation() {
    if (handed_over_ || undoes_.empty()) return;
    try {
        // Not yet asked to commit, it never will: letting go is safe without a fence. What fails here, others do.
        static_cast<void>(c_.store().write(undoes_));
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

void Reservation::hold(const std::string& stream) {
    if (held_.contains(stream)) return;
    for (;;) {
        const StreamRead read = reader_.head(stream);
        const store::Key key = slot_key(stream, read.head + 1);
        if (read.mine) {
            held_.emplace(stream, HeldSlot{.key = key, .epoch = read.next.epoch, .payload = {}});
            return;
        }
        const store::Write write = reserve_slot(key, read.next.epoch, claim());
        std::erase_if(undoes_, [&](const store::Write& undo) { return undo.key == key; });
        undoes_.push_back(undo_slot(key, tx_, read.next.epoch));
        const store::WriteAnswer answer = c_.store().write({&write, 1}).front();
        if (std::holds_alternative<store::Applied>(answer)) {
            held_.emplace(stream, HeldSlot{.key = key, .epoch = read.next.epoch, .payload = {}});
            return;
        }
        // Refused: the stream has moved on. Unanswered: the next read tells whether it got through.
        const auto* failure = std::get_if<Failure>(&answer);
        if (failure != nullptr && (!worth_repeating(*failure) || !unanswered_.next())) raise_certain(*failure);
        // Or somebody fenced this transaction and cleared its slot: reserving again for it would only be undone again.
        if (!is_alive()) {
            throw BlockedError("the reservation of stream '" + stream + "' was ended by somebody else");
        }
    }
}

}  // namespace varve::transactions
