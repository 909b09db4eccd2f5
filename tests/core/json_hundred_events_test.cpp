#include <varve/core/json.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

// A hundred event types in one variant. What this file costs to compile is what the codec costs its users.

namespace varve::json {
namespace {

enum class Channel { branch, web, phone };

// clang-format off
#define EVENT(n)                              \
    struct Event##n {                         \
        std::string account;                  \
        std::int64_t cents = n;               \
        std::vector<std::string> tags{};        \
        std::optional<Channel> channel{};       \
        bool checked = false;                 \
    };
#define TEN(each, n)                                                                       \
    each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7) \
    each(n##8) each(n##9)
#define HUNDRED(each)                                                                    \
    TEN(each, 1) TEN(each, 2) TEN(each, 3) TEN(each, 4) TEN(each, 5) TEN(each, 6)        \
    TEN(each, 7) TEN(each, 8) TEN(each, 9) TEN(each, 10)
#define ALTERNATIVE(n) Event##n,
// clang-format on

HUNDRED(EVENT)
struct Last {};
using Event = std::variant<HUNDRED(ALTERNATIVE) Last>;

TEST(JsonHundredEvents, an_event_among_a_hundred_types_comes_back_as_itself) {
    static_assert(std::variant_size_v<Event> == 101);
    const Event event{Event55{"a", 1, {"x"}, Channel::web, true}};
    const std::string text = encode(event);
    EXPECT_EQ(text, R"({"Event55":{"account":"a","cents":1,"tags":["x"],"channel":"web","checked":true}})");

    const auto decoded = decode<Event>(text);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->index(), event.index());
    EXPECT_EQ(encode(*decoded), text);
    EXPECT_EQ(encode(decode<Event>(R"({"Last":{}})").value()), R"({"Last":{}})");
}

}  // namespace
}  // namespace varve::json
