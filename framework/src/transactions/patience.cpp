#include "mutants.h"

#include <varve/transactions/patience.h>

namespace varve::transactions {

Verdict Patience::settle(const store::Key& key, const store::Item& item) {
    const Resolver::Claimed claimed{key, item};
    return settle({&claimed, 1}).front();
}

std::vector<Verdict> Patience::settle(std::span<const Resolver::Claimed> claimed) {
    return meet(claimed, VARVE_MUTANT("who holds nothing ends the younger"));
}

std::vector<Verdict> Patience::make_way(std::span<const Resolver::Claimed> claimed) {
    return meet(claimed, true);
}

std::vector<Verdict> Patience::meet(std::span<const Resolver::Claimed> claimed, bool takes_their_places) {
    const auto aborted = takes_their_places && !VARVE_MUTANT("what is ended is left for anybody to take")
                             ? Resolver::Aborted::leave
                             : Resolver::Aborted::clear;
    const std::set<std::string> met_before = met_alive_;
    // Whom this attempt may end, if they are younger, and whom it may not.
    std::vector<Resolver::Claimed> some[2];
    std::vector<std::size_t> indexes[2];
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        const std::string tx = claim_on(claimed[i].key, claimed[i].item)->tx;
        const bool is_own = command_of(tx) == command_of(mine_.tx) && !VARVE_MUTANT("own attempts are waited for");
        met_alive_.insert(tx);
        const bool may_end = is_own || (takes_their_places && met_before.contains(tx));
        some[may_end].push_back(claimed[i]);
        indexes[may_end].push_back(i);
    }
    std::vector<Verdict> verdicts(claimed.size(), Verdict::undecided);
    for (const bool may_end : {false, true}) {
        if (some[may_end].empty()) continue;
        const std::vector<Verdict> found = resolver_.settle(some[may_end], may_end ? &mine_ : nullptr, aborted);
        for (std::size_t k = 0; k < found.size(); ++k) {
            verdicts[indexes[may_end][k]] = found[k];
            if (found[k] != Verdict::undecided) continue;
            ++metrics_.waits;
            waited_ = true;
        }
    }
    return verdicts;
}

}  // namespace varve::transactions
