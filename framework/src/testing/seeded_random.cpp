#include <varve/testing/seeded_random.h>

namespace varve::testing {

std::uint64_t SeededRandom::next() {
    const std::lock_guard lock{mutex_};
    return engine_();
}

bool SeededRandom::chance(double probability) {
    if (probability <= 0) return false;
    // 53 bits make a double in [0, 1) without rounding, hence alike everywhere; std distributions are not.
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
}

}  // namespace varve::testing
