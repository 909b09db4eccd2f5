#include <varve/transactions/patience.h>

namespace varve::transactions {

Verdict Patience::settle(const store::Key& key, const store::Item& item) {
    const bool met_before = !met_alive_.insert(claim_on(key, item)->tx).second;
    const Verdict verdict = resolver_.settle(key, item, met_before ? &mine_ : nullptr);
    if (verdict == Verdict::undecided) {
        ++metrics_.waits;
        waited_ = true;
    }
    return verdict;
}

}  // namespace varve::transactions
