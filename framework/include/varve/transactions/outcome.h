#pragma once

#include <cstddef>

namespace varve::transactions {

/// What has become of a transaction.
enum class Verdict { committed, aborted, undecided };

/// How an attempt was committed; stands in its receipt, and in the metrics.
enum class Path {
    nothing,   ///< it wrote nothing; what it read was validated
    single,    ///< one conditional write
    native,    ///< one atomic request of the store's
    protocol,  ///< prepare, validate, commit, finalise
    reserved,  ///< the protocol, after its streams had been reserved
};
inline constexpr std::size_t paths = 5;
const char* to_string(Path path) noexcept;

}  // namespace varve::transactions
