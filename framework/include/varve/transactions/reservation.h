#pragma once

#include <varve/transactions/settled_reader.h>

#include <map>
#include <string>

namespace varve::transactions {

/// The way out for a command that keeps losing: instead of deciding first and hoping, it takes hold of its streams
/// before it reads them. A stream is held by a pending slot without events at its head, whose outcome stands in a slot
/// of the transaction's own; where the stream moves on meanwhile, what is held stays held and the new head is reserved.
/// Hot writers wait for it, so the oldest command always gets through. While it takes hold, what it holds already does
/// not expire.
///
///     Reservation reservation{coordinator, tx, since};
///     reservation.hold("account-alice");          // then load, decide, and commit a plan with reservation.held()
///
/// Threads: belongs to one attempt on one thread. The destructor lets go of everything, unless it was handed over.
class Reservation {
  public:
    Reservation(Coordinator& coordinator, const std::string& tx, Time since);
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    /// Returns when the stream is held, which costs a query and a write if nobody is in the way. BlockedError if
    /// another transaction did not let go within a lease, or somebody ended this one; the store's errors. Holding a
    /// stream twice is harmless.
    void hold(const std::string& stream);

    /// Whether nobody has ended it: all that is held is held still, and has been since. One read.
    bool is_alive() const;

    /// What is held, by stream.
    const std::map<std::string, HeldSlot>& held() const { return held_; }

    /// From now on the Coordinator's commit answers for what is held.
    void hand_over();

  private:
    Claim claim() const;
    store::WriteAnswer reserve(const store::Key& key, Epoch epoch);
    void renew_leases();

    Coordinator& c_;
    const Time since_;
    const std::string tx_;
    std::map<std::string, HeldSlot> held_;
    SteadyTime renew_at_{};                      // when half of the shortest lease is over; set while something is held
    std::map<store::Key, store::Write> undoes_;  // of every reservation that is there or may yet arrive
    bool handed_over_ = false;
};

}  // namespace varve::transactions
