// Effects of a bank in a file are delivered, whoever dies.

#include "scratch_file.h"
#include "support/delivering.h"

#include <string>

#include <gtest/gtest.h>

namespace varve::sqlite {
namespace {

TEST_F(DyingDelivery, arrives_in_order_from_a_file_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died; ++at) {
            const ScratchFile file{fast_directory()};
            has_died = run(open(file.options()), at, applies);
        }
        EXPECT_GT(at, 20);
    }
}

}  // namespace
}  // namespace varve::sqlite
