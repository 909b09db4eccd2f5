#include "transactions/patience.h"

#include <varve/core/error.h>

namespace varve::transactions {

Verdict Patience::settle(const store::Key& key, const store::Item& item) {
    const Resolver::Claimed claimed{key, item};
    return settle({&claimed, 1}).front();
}

std::vector<Verdict> Patience::settle(std::span<const Resolver::Claimed> claimed) {
    std::vector<Verdict> verdicts;
    try {
        verdicts = resolver_.settle(claimed, command_of(mine_.tx));
    } catch (const UnavailableError& error) {
        // What they are is not known, which is as good as alive: whoever waits for them asks again.
        if (!error.retryable()) throw;
        verdicts.assign(claimed.size(), Verdict::undecided);
    }
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        if (verdicts[i] != Verdict::undecided) continue;
        ++metrics_.waits;
        ++met_alive_[claim_on(claimed[i].key, claimed[i].item)->tx];
    }
    return verdicts;
}

bool Patience::is_outranked(const Claim& claim) const {
    const auto met = met_alive_.find(claim.tx);
    return met != met_alive_.end() && met->second > 1 && claim.rank() < mine_;
}

}  // namespace varve::transactions
