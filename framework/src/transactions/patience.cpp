#include <varve/transactions/patience.h>

#include <limits>

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

RetryPolicy waiting(Duration time_max) {
    return {.first_delay = std::chrono::milliseconds{1},
            .delay_max = std::chrono::milliseconds{100},
            .attempts_max = std::numeric_limits<unsigned>::max(),
            .time_max = time_max};
}

}  // namespace varve::transactions
