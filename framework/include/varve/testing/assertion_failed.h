#pragma once

#include <stdexcept>

namespace varve::testing {

/// What a check of a test throws when it does not hold. Any test framework reports an exception with its message; none
/// is needed here.
struct AssertionFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace varve::testing
