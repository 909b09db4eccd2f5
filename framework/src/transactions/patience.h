#pragma once

#include "transactions/resolver.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace varve::transactions {

/// How one attempt treats the transactions that it meets on its way. It waits for whoever is alive, and ends nobody but
/// the dead and earlier attempts of its own command: most of those met are about to finish, and to end them makes room
/// for the next one, by which whoever has nothing in hand gains nothing. Two that wait for each other must not go on,
/// so whoever holds something lets go of it for an older one ("wait-die": D. Rosenkrantz, R. Stearns, P. Lewis,
/// "System Level Concurrency Control for Distributed Database Systems", 1978).
///
///     Patience patience{resolver, metrics, {since, tx}};
///     if (patience.settle(key, item) == Verdict::undecided) wait();   // then look again
///
/// Threads: belongs to one attempt on one thread.
class Patience {
  public:
    Patience(Resolver& resolver, Metrics& metrics, Priority mine)
        : resolver_(resolver), metrics_(metrics), mine_(std::move(mine)) {}

    /// Settles the claim that stands on the item under `key`, see Resolver::settle. `undecided`: not to be touched, or
    /// not known; wait a round of back-off and read the item again. Errors: those of the store, but for its silence.
    Verdict settle(const store::Key& key, const store::Item& item);
    /// The same about many at once, in their order.
    std::vector<Verdict> settle(std::span<const Resolver::Claimed> claimed);

    /// Whether anybody had to be waited for.
    bool waited() const { return !met_alive_.empty(); }

    /// Whether the transaction of this claim, which was met undecided more than once, goes first: whoever holds
    /// something that it may be waiting for lets go.
    bool is_outranked(const Claim& claim) const;

  private:
    Resolver& resolver_;
    Metrics& metrics_;
    const Priority mine_;
    std::map<std::string, unsigned> met_alive_;  // transactions, and how often each was met
};

}  // namespace varve::transactions
