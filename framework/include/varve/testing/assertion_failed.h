#pragma once

#include <stdexcept>

namespace varve::testing {

/// A test's check throws this when it does not hold. Any test framework reports an exception with its message, so none
/// is needed here.
struct AssertionFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace varve::testing
