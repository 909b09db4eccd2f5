#pragma once

#include <varve/transactions/resolver.h>

#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::transactions {

/// How one attempt treats the transactions that it meets on its way. Who is older may end who is younger, but only where
/// it takes the place of what it ends: whoever reads or validates holds nothing of what it meets, and would make room
/// for the next younger one, again and again, until nobody gets anywhere. And not at the first meeting: most of those
/// met are about to finish, and to end them wastes all that they have done. An earlier attempt of the same command is
/// ended at sight.
///
///     Patience patience{resolver, metrics, {since, tx}};
///     if (patience.settle(key, item) == Verdict::undecided) wait();   // then look again
///
/// Threads: belongs to one attempt on one thread.
class Patience {
  public:
    Patience(Resolver& resolver, Metrics& metrics, Priority mine)
        : resolver_(resolver), metrics_(metrics), mine_(std::move(mine)) {}

    /// For who reads or validates: settles the claim that stands on the item under `key`, see Resolver::settle.
    /// `undecided`: not to be touched; wait a round of back-off and read the item again. Errors: those of the store.
    Verdict settle(const store::Key& key, const store::Item& item);
    /// The same about many at once, in their order.
    std::vector<Verdict> settle(std::span<const Resolver::Claimed> claimed);

    /// For who is going to write its own claims there: ends younger ones that it meets again. `aborted`: the item is as
    /// it was, claim and all, to be written over; if it is that transaction's own primary, it is void. `committed` and
    /// `undecided` as in settle().
    std::vector<Verdict> make_way(std::span<const Resolver::Claimed> claimed);

    /// Whether anybody had to be waited for.
    bool waited() const { return waited_; }

  private:
    std::vector<Verdict> meet(std::span<const Resolver::Claimed> claimed, bool takes_their_places);

    Resolver& resolver_;
    Metrics& metrics_;
    const Priority mine_;
    std::set<std::string> met_alive_;  // transactions
    bool waited_ = false;
};

}  // namespace varve::transactions
