#include "support/json_cases.h"

#include <varve/core/json.h>

#include <gtest/gtest.h>

namespace varve::json {
namespace {

TEST(JsonTexts, only_what_is_json_is_read) {
    for (const JsonCase& one : json_cases()) {
        const auto read = decode<Raw>(one.text, {.depth_max = 1'000});
        EXPECT_EQ(static_cast<bool>(read), one.valid)
            << one.text << (read ? std::string{} : " " + read.error().message);
        EXPECT_EQ(same(one.text, one.text), one.valid) << one.text;
    }
    using namespace std::string_view_literals;
    for (const std::string_view text : {"{}\0garbage"sv, "{}\0"sv, "\xef\xbb\xbf{}"sv, "[1]\0]"sv}) {
        EXPECT_FALSE(decode<Raw>(text)) << text;
        EXPECT_FALSE(same(text, text)) << text;
    }
}

TEST(JsonTexts, of_a_float_that_does_not_fit_are_refused_also_where_they_are_skipped) {
    struct Nothing {};
    for (const char* number : {"123e308", "-0.1e310", "1000e307"}) {
        EXPECT_FALSE(decode<Nothing>("{\"x\":" + std::string{number} + "}")) << number;
    }
    EXPECT_FALSE(decode<Nothing>("{\"x\":" + std::string(400, '9') + "}"));
    EXPECT_TRUE(decode<Nothing>("{\"x\":0." + std::string(400, '0') + "1}"));
}

TEST(JsonSame, white_space_order_and_notation_tell_nothing) {
    EXPECT_TRUE(same(R"({"a":1,"b":[true,null]})", R"( { "b" : [ true , null ], "a" : 1 } )"));
    EXPECT_TRUE(same(R"(["\u0061"])", R"(["a"])"));
    for (const char* hundred : {"100", "100.0", "1e2", "1.00E+2", "10000e-2", "0.01e4"})
        EXPECT_TRUE(same(hundred, "100"));
    for (const char* zero : {"0", "-0", "0.0", "0e5", "-0.00e-7"}) EXPECT_TRUE(same(zero, "0"));
}

TEST(JsonSame, every_digit_counts) {
    EXPECT_FALSE(same("18446744073709551616", "18446744073709551617"));
    EXPECT_FALSE(same("9007199254740992.0", "9007199254740993.0"));
    EXPECT_FALSE(same("0.1", "0.10000000000000000555"));
    EXPECT_FALSE(same("1e-400", "1e-401"));
    EXPECT_FALSE(same("1", "-1"));
}

TEST(JsonSame, what_differs_is_not_the_same) {
    EXPECT_FALSE(same("1", "\"1\""));
    EXPECT_FALSE(same("\"1e0\"", "1"));
    EXPECT_FALSE(same("[1,2]", "[2,1]"));
    EXPECT_FALSE(same("[]", "{}"));
    EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":2})"));
    EXPECT_FALSE(same(R"({"a":1})", R"({"b":1})"));
    EXPECT_FALSE(same(R"({"a":1,"a":2})", R"({"a":2,"a":1})"));
    EXPECT_FALSE(same("true", "false"));
    EXPECT_FALSE(same("null", "false"));
    EXPECT_FALSE(same(R"("a\u0000b")", R"("a\u0000c")"));
}

TEST(JsonSame, depth_is_no_matter) {
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    EXPECT_TRUE(same(deep, deep + " "));
    EXPECT_FALSE(same(deep, std::string(200'000, '[') + "1" + std::string(200'000, ']')));
}

}  // namespace
}  // namespace varve::json
