#include <varve/store/condition.h>

#include <gtest/gtest.h>

namespace varve::store {
namespace {

const Item item{{"number", std::int64_t{7}}, {"text", std::string{"m"}}, {"bytes", Bytes{std::byte{0x80}}}};

TEST(Condition, none_at_all_always_holds) {
    EXPECT_TRUE(holds({}, nullptr));
    EXPECT_TRUE(holds({}, &item));
}

TEST(Condition, equality_needs_type_and_value) {
    EXPECT_TRUE(holds(equals("number", std::int64_t{7}), &item));
    EXPECT_FALSE(holds(equals("number", std::string{"7"}), &item));
    EXPECT_FALSE(holds(equals("missing", std::string{}), &item));
    EXPECT_FALSE(holds(equals("number", std::int64_t{7}), nullptr));
}

TEST(Condition, less_compares_within_one_type_only) {
    EXPECT_TRUE(holds(less("number", std::int64_t{8}), &item));
    EXPECT_FALSE(holds(less("number", std::int64_t{7}), &item));
    EXPECT_TRUE(holds(less("text", std::string{"n"}), &item));
    EXPECT_TRUE(holds(less("text", std::string{"\xc3\xa9"}), &item)) << "text compares as unsigned bytes";
    EXPECT_TRUE(holds(less("bytes", Bytes{std::byte{0x81}}), &item));
    EXPECT_FALSE(holds(less("bytes", Bytes{std::byte{0x7f}}), &item));
    EXPECT_FALSE(holds(less("number", std::string{"z"}), &item));
}

TEST(Condition, trees_combine) {
    const Condition free = !item_exists() || (equals("text", std::string{"m"}) && less("number", std::int64_t{8}));
    EXPECT_TRUE(holds(free, nullptr));
    EXPECT_TRUE(holds(free, &item));
    EXPECT_FALSE(holds(!free, &item));
    EXPECT_TRUE(holds(exists("text") && exists("number") && !exists("missing"), &item));
}

}  // namespace
}  // namespace varve::store
