#pragma once

#include <varve/transactions/resolver.h>

#include <set>
#include <string>

namespace varve::transactions {

/// How one attempt treats the transactions that it meets on its way. Who is older may end who is younger, but not at
/// the first meeting: most of those met are about to finish, and to end them wastes all that they have done. Without
/// that round many commands in each other's way end each other again and again.
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
    /// not yet; wait a round of back-off and read the item again. Errors: those of the store.
    Verdict settle(const store::Key& key, const store::Item& item);

    /// Whether anybody had to be waited for.
    bool waited() const { return waited_; }

  private:
    Resolver& resolver_;
    Metrics& metrics_;
    const Priority mine_;
    std::set<std::string> met_alive_;  // transactions
    bool waited_ = false;
};

}  // namespace varve::transactions
