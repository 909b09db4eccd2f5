#pragma once

#include <varve/testing/assertion_failed.h>

#include <string>

#include <gtest/gtest.h>

namespace varve::testing {

/// The message of the failure that `act` must end in.
template <class Act>
std::string failure_of(Act act) {
    try {
        act();
    } catch (const AssertionFailed& failed) {
        return failed.what();
    }
    ADD_FAILURE() << "nothing failed";
    return {};
}

}  // namespace varve::testing
