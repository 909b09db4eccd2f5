#ifndef VARVE_ASSERTIONS
#define VARVE_ASSERTIONS
#endif
#include "core/assert.h"

#include "support/sanitized.h"
#include "transactions/slot.h"

#include <gtest/gtest.h>

namespace varve {

bool goes_on_where_assertions_are_off();  // assert_off_test.cpp

namespace {

#ifdef NDEBUG
constexpr bool library_asserts = is_sanitized;
#else
constexpr bool library_asserts = true;
#endif

TEST(AnAssertion, that_fails_names_its_place_and_its_sentence) {
    const int sum = 3;
    VARVE_ASSERT(sum == 3, "a sum is right");
    EXPECT_DEATH(VARVE_ASSERT(sum == 4, "a sum is right"),
                 "assert_test.cpp:[0-9]+: it does not hold that a sum is right");
}

TEST(AnAssertion, that_is_off_is_not_evaluated) {
    EXPECT_TRUE(goes_on_where_assertions_are_off());
}

TEST(AnAssertion, in_the_library_is_on_in_debug_and_sanitizer_builds_alone) {
    using namespace transactions;
    const auto break_an_invariant = [] {
        static_cast<void>(commit_free_slot(slot_key("account-a", 1), 0, {.write_id = "", .payload = {}}));
    };
    if (library_asserts) {
        EXPECT_DEATH(break_an_invariant(),
                     "slot.cpp:[0-9]+: it does not hold that every committed slot has a write id");
    } else {
        break_an_invariant();
    }
}

}  // namespace
}  // namespace varve
