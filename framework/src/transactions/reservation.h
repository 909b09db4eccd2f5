#pragma once

#include "transactions/coordinator.h"
#include "transactions/patience.h"
#include "transactions/settled_reader.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace varve::transactions {

/// The way out for a command that keeps losing: instead of deciding first and hoping, it takes hold of its streams and
/// rows before it reads them. A stream is held by a pending slot without events at its head, a row by an intent without
/// an image, and the outcome of both stands in a slot of the transaction's own. Where something has moved on meanwhile,
/// what is held stays held and the new head or image is reserved. Whoever writes there waits for it. While it takes
/// hold, what it holds already does not expire.
///
///     Reservation reservation{coordinator, tx, since};
///     reservation.hold({.streams = {{"account-alice", {}}}, .rows = {}});   // then load, decide, and commit a plan
///                                                                         // with all that is held
///
/// Threads: belongs to one attempt on one thread. The destructor lets go of everything, unless it was handed over.
class Reservation {
  public:
    /// `until`: nobody is waited for after that.
    Reservation(Coordinator& coordinator, const std::string& tx, Time since, SteadyTime until = SteadyTime::max());
    ~Reservation();
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    /// What to take hold of, as it was last known: the slot after a stream's head, a row's image. The better it is
    /// known, the fewer requests it takes.
    struct Wanted {
        struct Stream {
            Version head = 0;
            Epoch epoch = 0;
        };
        std::map<std::string, Stream> streams = {};
        std::map<store::Key, Image> rows = {};
        bool is_long_ago = false;  ///< so it is looked at first, in one read
        /// Where it failed before: that is waited for with nothing in hand, then the others.
        ConflictDetails first = {};
    };

    /// Returns when all of it is held: one write where all is as it was last known and nobody is in the way.
    /// BlockedError if another transaction did not let go within a lease or by `until`, if an older one is met while
    /// something is held already, if something moved on for as long, or somebody ended this one; the store's errors.
    /// What is held already is left as it is.
    void hold(const Wanted& wanted);
    /// One more, of which nothing is known.
    const HeldSlot& hold(const std::string& stream);
    const Image& hold(const store::Key& row);

    bool holds_anything() const { return !streams_.empty() || !rows_.empty(); }
    /// Whether nobody has ended it: all that is held is held still, and has been since. One read.
    bool is_alive() const;

    /// What is held.
    const std::map<std::string, HeldSlot>& streams() const { return streams_; }
    const std::map<store::Key, Image>& rows() const { return rows_; }

    /// Where half of the lease is over, it begins anew.
    void renew_leases();

    /// From now on the Coordinator's commit answers for what is held.
    void hand_over();

  private:
    /// Something that is not held yet, and how it is going to be.
    struct Open {
        std::string stream = {};  // empty: a row
        store::Key key = {};
        Epoch epoch = 0;
        Image seen = {};
        bool is_known = true;      // as it was a moment ago
        unsigned misses = 0;       // writes that met a newer head
        bool is_in_doubt = false;  // some write under this key was not answered, and may yet arrive
    };

    Claim claim() const;
    void hold(std::vector<Open> open, bool first_alone);
    /// Looks at those that are not known: one round trip.
    void look_at(std::span<Open> open) const;
    store::Write write(const Open& one, const Claim& claim) const;
    store::Write undo(const Open& one) const;
    void take(Open& one);
    /// The last write met its own claim: an earlier one got through.
    void take_as_found(Open& one, const store::Item& current);
    /// The last write met something newer, or a void; true: a void that may have taken this reservation's place.
    bool follow(Open& one, const std::optional<store::Item>& current);

    Coordinator& coordinator_;
    const Time since_;
    const SteadyTime until_;
    const std::string tx_;
    Patience patience_;
    std::map<std::string, HeldSlot> streams_;
    std::map<store::Key, Image> rows_;
    SteadyTime renew_at_{};                      // when half of the shortest lease is over; set while something is held
    std::map<store::Key, store::Write> undoes_;  // of every reservation that is there or may yet arrive
    bool handed_over_ = false;
};

}  // namespace varve::transactions
