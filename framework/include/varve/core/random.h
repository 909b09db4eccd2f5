#pragma once

#include <cstdint>

namespace varve {

/// The only source of randomness: ids and jitter come from here. Injected, so that one seed fixes a whole run.
///
/// Threads: all methods may be called from any thread.
class Random {
  public:
    virtual ~Random() = default;
    /// 64 uniformly distributed bits.
    virtual std::uint64_t next() = 0;
    /// Uniform in [0, bound); 0 when bound is 0.
    std::uint64_t below(std::uint64_t bound);

    /// The operating system's randomness (getrandom); never repeats itself in a forked child.
    static Random& system();
};

}  // namespace varve
