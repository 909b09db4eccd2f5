#include <varve/core/fnv1a.h>

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(Fnv1a, is_that_of_its_authors) {
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
    EXPECT_EQ(fnv1a("\xff"), 0xaf64724c8602eb6eu);
}

}  // namespace
}  // namespace varve
