// Processes of a shop in a file react, and their timers fire, whoever dies.

#include "scratch_file.h"
#include "support/timing.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace varve::sqlite {
namespace {

TEST_F(DyingReaction, happens_once_from_a_file_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at) {
            const ScratchFile file{fast_directory()};
            has_died = run(open(file.options()), at, applies);
        }
        EXPECT_GT(at, 20);
    }
}

TEST_F(DyingTimers, each_fires_once_from_a_file_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at) {
            const ScratchFile file{fast_directory()};
            has_died = run(open(file.options()), at, applies);
        }
        EXPECT_GT(at, 20);
    }
}

}  // namespace
}  // namespace varve::sqlite
