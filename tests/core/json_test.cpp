#include <varve/core/error.h>
#include <varve/core/json.h>

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace varve::json {

/// Outside the anonymous namespace, as most users' types are.
struct Deposited {
    std::int64_t cents;
};

namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;

template <class T>
T decoded(std::string_view text, const DecodeOptions& options = {}) {
    auto result = decode<T>(text, options);
    if (!result) throw std::runtime_error("'" + std::string{text} + "': " + result.error().message);
    return *std::move(result);
}

template <class T>
std::string error_of(std::string_view text, const DecodeOptions& options = {}) {
    auto result = decode<T>(text, options);
    return result ? "no error" : result.error().message;
}

template <class T>
std::string encode_error(const T& value, const EncodeOptions& options = {}) {
    try {
        return "no error: " + encode(value, options);
    } catch (const InvalidError& error) {
        return error.what();
    }
}

enum class Channel : std::uint8_t { branch, web, phone = 200 };
enum Weight : short { light = -128, heavy = 255, beyond = 300 };

struct Line {
    std::string product;
    std::int64_t cents = 7;
    bool operator==(const Line&) const = default;
};

struct Order {
    std::string id;
    std::vector<Line> lines;
    std::optional<std::string> note;
    Channel channel = Channel::web;
    std::map<std::string, std::vector<int>> ratings;
    Line total{"sum", 9};
    bool operator==(const Order&) const = default;
};

struct Empty {
    bool operator==(const Empty&) const = default;
};

struct Renamed {
    static constexpr std::string_view name = "the-renamed";
    int x = 0;
    bool operator==(const Renamed&) const = default;
};

using Event = std::variant<Empty, Renamed, Deposited>;

struct Tree {
    int id = 0;
    std::vector<Tree> children{};
    std::map<std::string, Tree> named{};
    bool operator==(const Tree&) const = default;
};

// Structs -------------------------------------------------------------------------------------------------------------

TEST(Json, a_plain_struct_becomes_an_object_with_its_fields_in_order) {
    EXPECT_EQ(encode(Deposited{5}), R"({"cents":5})");
    const Order order{"o-1", {{"tea", 420}, {"milk", 90}}, "käse", Channel::phone, {{"a b", {1, 2}}}, {"sum", 510}};
    const std::string text = encode(order);
    EXPECT_EQ(text,
              R"({"id":"o-1","lines":[{"product":"tea","cents":420},{"product":"milk","cents":90}],"note":"käse",)"
              R"("channel":"phone","ratings":{"a b":[1,2]},"total":{"product":"sum","cents":510}})");
    EXPECT_EQ(decoded<Order>(text), order);
}

TEST(Json, a_struct_local_to_a_function_has_field_names) {
    struct Local {
        int first;
        double second;
    };
    EXPECT_EQ(encode(Local{1, 0.5}), R"({"first":1,"second":0.5})");
}

TEST(Json, arrays_and_nested_structs_count_as_one_field) {
    struct Pair {
        int a, b;
    };
    struct Mixed {
        Pair pair;
        std::array<int, 3> numbers;
        std::array<Pair, 2> pairs;
        int last;
    };
    const std::string text =
        R"({"pair":{"a":1,"b":2},"numbers":[3,4,5],"pairs":[{"a":6,"b":7},{"a":8,"b":9}],"last":10})";
    EXPECT_EQ(encode(decoded<Mixed>(text)), text);
}

TEST(Json, a_struct_without_fields_is_an_empty_object) {
    EXPECT_EQ(encode(Empty{}), "{}");
    EXPECT_TRUE(decode<Empty>(R"({"anything":[1,{"x":null}]})"));
    EXPECT_EQ(error_of<Empty>("[]"), "$: expected an object, found an array");
}

TEST(Json, sixty_four_fields_are_possible) {
    struct Wide {
        int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, b0 = 0, b1 = 1, b2 = 2, b3 = 3, b4 = 4,
            b5 = 5, b6 = 6, b7 = 7, c0 = 0, c1 = 1, c2 = 2, c3 = 3, c4 = 4, c5 = 5, c6 = 6, c7 = 7, d0 = 0, d1 = 1,
            d2 = 2, d3 = 3, d4 = 4, d5 = 5, d6 = 6, d7 = 7, e0 = 0, e1 = 1, e2 = 2, e3 = 3, e4 = 4, e5 = 5, e6 = 6,
            e7 = 7, f0 = 0, f1 = 1, f2 = 2, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7, g0 = 0, g1 = 1, g2 = 2, g3 = 3,
            g4 = 4, g5 = 5, g6 = 6, g7 = 7, h0 = 0, h1 = 1, h2 = 2, h3 = 3, h4 = 4, h5 = 5, h6 = 6, h7 = 7;
    };
    const std::string text = encode(decoded<Wide>(R"({"h7":-1})"));
    EXPECT_TRUE(text.starts_with(R"({"a0":0,"a1":1,)")) << text;
    EXPECT_TRUE(text.ends_with(R"("h6":6,"h7":-1})")) << text;
}

TEST(Json, a_struct_may_contain_itself) {
    const Tree tree{1, {{2, {{3}}}, {4}}, {{"x", {5}}}};
    EXPECT_EQ(decoded<Tree>(encode(tree)), tree);
}

TEST(Json, unknown_members_are_skipped) {
    EXPECT_EQ(decoded<Line>(R"({"a":{"b":[1,"x",{"cents":3}]},"cents":5,"z":null,"y":1e5})").cents, 5);
}

TEST(Json, a_missing_member_keeps_the_default_of_the_definition) {
    EXPECT_EQ(decoded<Line>("{}"), (Line{"", 7}));
    EXPECT_EQ(decoded<Order>(R"({"total":{"cents":1}})").total, (Line{"sum", 1}));
    EXPECT_EQ(decoded<Deposited>("{}").cents, 0);
}

TEST(Json, a_missing_member_is_named_when_all_are_required) {
    const DecodeOptions all{.require_all = true};
    EXPECT_EQ(error_of<Line>(R"({"product":"tea"})", all), "$: the member 'cents' is missing");
    EXPECT_EQ(error_of<Order>(R"({"id":"a","lines":[{"cents":1,"product":""},{"cents":1}]})", all),
              "$.lines[1]: the member 'product' is missing");
    const std::string without_note = encode(Order{});
    EXPECT_EQ(error_of<Order>(without_note, all), "no error");
}

TEST(Json, a_member_given_twice_is_an_error) {
    EXPECT_EQ(error_of<Line>(R"({"cents":1,"cents":1})"), "$.cents: the member appears twice");
    EXPECT_EQ(error_of<Order>(R"({"ratings":{"x":[],"x":[]}})"), "$.ratings.x: the member appears twice");
}

TEST(Json, an_array_replaces_the_default) {
    struct WithDefault {
        std::vector<int> numbers{1, 2};
        std::map<std::string, int> map{{"a", 1}};
    };
    EXPECT_EQ(encode(decoded<WithDefault>("{}")), R"({"numbers":[1,2],"map":{"a":1}})");
    EXPECT_EQ(encode(decoded<WithDefault>(R"({"numbers":[],"map":{}})")), R"({"numbers":[],"map":{}})");
}

// Numbers -------------------------------------------------------------------------------------------------------------

template <class T>
void expect_whole_range() {
    for (const T value : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{0}, T{1}}) {
        EXPECT_EQ(encode(value), std::to_string(value));
        EXPECT_EQ(decoded<T>(encode(value)), value);
    }
}

TEST(Json, integers_of_all_sizes_are_exact) {
    expect_whole_range<std::int8_t>();
    expect_whole_range<std::uint8_t>();
    expect_whole_range<std::int16_t>();
    expect_whole_range<std::uint16_t>();
    expect_whole_range<std::int32_t>();
    expect_whole_range<std::uint32_t>();
    expect_whole_range<std::int64_t>();
    expect_whole_range<std::uint64_t>();
    expect_whole_range<long long>();
    EXPECT_EQ(decoded<std::int64_t>("9007199254740993"), 9007199254740993);
    EXPECT_EQ(decoded<std::uint64_t>("9007199254740993"), 9007199254740993u);
    EXPECT_EQ(decoded<std::uint64_t>("-0"), 0u);
}

TEST(Json, an_integer_that_does_not_fit_is_refused) {
    EXPECT_EQ(error_of<std::uint8_t>("256"), "$: 256 is not between 0 and 255");
    EXPECT_EQ(error_of<std::uint8_t>("-1"), "$: -1 is not between 0 and 255");
    EXPECT_EQ(error_of<std::int8_t>("128"), "$: 128 is not between -128 and 127");
    EXPECT_EQ(error_of<std::int8_t>("-129"), "$: -129 is not between -128 and 127");
    EXPECT_EQ(error_of<std::int64_t>("9223372036854775808"),
              "$: 9223372036854775808 is not between -9223372036854775808 and 9223372036854775807");
    EXPECT_EQ(error_of<std::uint64_t>("18446744073709551616"),
              "$: 18446744073709551616 is not between 0 and 18446744073709551615");
    EXPECT_EQ(error_of<std::int64_t>("1.0"), "$: expected an integer, found 1.0");
    EXPECT_EQ(error_of<std::int64_t>("1e2"), "$: expected an integer, found 1e2");
    EXPECT_EQ(error_of<std::int64_t>("12345678901234567890123456789012345678901234567890"),
              "$: 1234567890123456789012345678901234567890... is not between -9223372036854775808 and "
              "9223372036854775807");
}

TEST(Json, doubles_come_back_bit_by_bit) {
    using limits = std::numeric_limits<double>;
    for (const double value : {0.1, 1.0 / 3, 5e-324, limits::max(), limits::min(), -1e21, 123456789.125, -0.0}) {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(decoded<double>(encode(value))), std::bit_cast<std::uint64_t>(value))
            << encode(value);
    }
    EXPECT_EQ(encode(0.1), "0.1");
    EXPECT_EQ(encode(5.0), "5");
    EXPECT_EQ(decoded<double>("5"), 5.0);
    EXPECT_EQ(decoded<double>("1E+2"), 100.0);
    EXPECT_EQ(decoded<double>("9007199254740993"), 9007199254740992.0);
    EXPECT_EQ(decoded<float>(encode(0.1f)), 0.1f);
}

TEST(Json, what_is_no_finite_double_is_refused) {
    EXPECT_EQ(encode_error(std::numeric_limits<double>::quiet_NaN()), "$: NaN and infinity have no JSON form");
    EXPECT_EQ(encode_error(std::vector<float>{1, -std::numeric_limits<float>::infinity()}),
              "$[1]: NaN and infinity have no JSON form");
    EXPECT_EQ(error_of<double>("1e999"), "$: a number beyond the range of a double at byte 0");
    EXPECT_EQ(error_of<float>("1e39"), "$: 1e39 does not fit a floating-point number of 32 bits");
    for (const char* text : {"NaN", "Infinity", "-Infinity", "+1", ".5", "1.", "01", "0x1", "1e", "--1", "-"}) {
        EXPECT_FALSE(decode<double>(text)) << text;
    }
}

// Strings -------------------------------------------------------------------------------------------------------------

TEST(Json, strings_are_escaped_only_where_they_must_be) {
    EXPECT_EQ(encode("\"\\/\b\f\n\r\t\x01\x1f\x7f é €\U0001F600"s + "\0"s),
              "\"\\\"\\\\/\\u0008\\u000c\\n\\r\\t\\u0001\\u001f\x7f é €\U0001F600\\u0000\"");
    for (int c = 0; c < 0x80; ++c) {
        const std::string text(1, static_cast<char>(c));
        EXPECT_EQ(decoded<std::string>(encode(text)), text) << c;
    }
    EXPECT_EQ(decoded<std::string>(R"("\u00e9\ud83d\ude00\/\b\f\u0000")"), "é\U0001F600/\b\f\0"s);
    EXPECT_EQ(quote_lossy("\xff"
                          "caf\xc3\xa9 \xc3( \xed\xa0\x80"),
              "\"?caf\xc3\xa9 ?( ???\"");
    EXPECT_EQ(quote("a\"b"), R"("a\"b")");
}

const std::vector<std::pair<const char*, std::string>> invalid_utf8 = {
    {"a byte that never occurs", "\xff"},
    {"a continuation alone", "\x80"},
    {"overlong, two bytes", "\xc0\xaf"},
    {"overlong, two bytes, limit", "\xc1\xbf"},
    {"overlong, three bytes", "\xe0\x80\xaf"},
    {"overlong, three bytes, limit", "\xe0\x9f\xbf"},
    {"overlong, four bytes", "\xf0\x80\x80\xaf"},
    {"overlong, four bytes, limit", "\xf0\x8f\xbf\xbf"},
    {"a high surrogate", "\xed\xa0\x80"},
    {"a low surrogate", "\xed\xbf\xbf"},
    {"beyond U+10FFFF", "\xf4\x90\x80\x80"},
    {"five bytes", "\xf8\x88\x80\x80\x80"},
    {"cut after one of two", "\xc3"},
    {"cut after two of three", "\xe2\x82"},
    {"cut after three of four", "\xf0\x9f\x98"},
    {"a lead where a continuation belongs", "\xe2\x82\xc3\xa9"},
};

TEST(Json, invalid_utf8_is_refused_both_ways) {
    for (const auto& [what, bytes] : invalid_utf8) {
        for (const std::string& padding : {""s, "0123456789abcdef"s}) {
            const std::string text = padding + bytes;
            const std::string at = std::to_string(padding.size());
            EXPECT_EQ(encode_error(Line{text, 1}), "$.product: a string that is not valid UTF-8 at its byte " + at)
                << what;
            EXPECT_EQ(error_of<std::string>("\"" + text + "\""),
                      "$: invalid UTF-8 at byte " + std::to_string(padding.size() + 1))
                << what;
            EXPECT_THROW((void)quote(text), InvalidError) << what;
            EXPECT_TRUE(same(quote_lossy(text), quote_lossy(text))) << what;  // it is JSON
            EXPECT_FALSE(decode<Line>("{\"skipped\":\"" + text + "\"}")) << what;
        }
    }
}

TEST(Json, the_limits_of_valid_utf8_are_accepted) {
    for (const char* text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_EQ(decoded<std::string>(encode(std::string{text})), text);
    }
}

TEST(Json, lone_surrogates_are_refused) {
    for (const char* text : {R"("\ud800")", R"("\udfff")", R"("\ude00\ud83d")", R"("\ud83dx")", R"("\ud83d\u0041")",
                             R"("\ud83d\ud83d")"}) {
        EXPECT_NE(error_of<std::string>(text).find("lone surrogate"), std::string::npos) << text;
        EXPECT_FALSE(decode<Raw>(text)) << text;
        EXPECT_FALSE(decode<Line>("{\"skipped\":"s + text + "}")) << text;
        EXPECT_FALSE(decode<Line>("{"s + text + ":1}")) << text;
    }
}

// Other types ---------------------------------------------------------------------------------------------------------

TEST(Json, an_empty_optional_is_left_out_and_null_is_read) {
    struct Options {
        std::optional<int> a;
        std::optional<Line> b;
        std::vector<std::optional<int>> c;
    };
    EXPECT_EQ(encode(Options{}), R"({"c":[]})");
    EXPECT_EQ(encode(Options{1, Line{"x", 2}, {3, {}}}), R"({"a":1,"b":{"product":"x","cents":2},"c":[3,null]})");
    const auto options = decoded<Options>(R"({"a":null,"b":{},"c":[null,4]})");
    EXPECT_EQ(encode(options), R"({"b":{"product":"","cents":7},"c":[null,4]})");
    EXPECT_EQ(encode(std::optional<int>{}), "null");
    EXPECT_EQ(error_of<Line>(R"({"cents":null})"), "$.cents: expected an integer, found null");
}

TEST(Json, enums_are_stored_by_name) {
    EXPECT_EQ(encode(std::vector{Channel::branch, Channel::phone}), R"(["branch","phone"])");
    EXPECT_EQ(encode(std::vector{light, heavy}), R"(["light","heavy"])");
    EXPECT_EQ(decoded<std::vector<Weight>>(R"(["heavy","light"])"), (std::vector{heavy, light}));
    EXPECT_EQ(encode_error(std::vector{beyond}), "$[0]: 300 is no named value of Weight");
    EXPECT_EQ(encode_error(static_cast<Channel>(77)), "$: 77 is no named value of Channel");
    EXPECT_EQ(error_of<Order>(R"({"channel":"fone"})"),
              "$.channel: unknown Channel 'fone' (did you mean 'phone'? known: branch, web, phone)");
    EXPECT_EQ(error_of<Channel>("1"), "$: expected the name of a Channel, found a number");
}

TEST(Json, a_variant_is_an_object_with_one_member_named_by_the_alternative) {
    const std::vector<Event> events{Empty{}, Renamed{3}, Deposited{4}};
    const std::string text = encode(events);
    EXPECT_EQ(text, R"([{"Empty":{}},{"the-renamed":{"x":3}},{"Deposited":{"cents":4}}])");
    EXPECT_EQ(encode(decoded<std::vector<Event>>(text)), text);
    EXPECT_EQ(error_of<Event>("{}"), "$: expected an object with one member, found none");
    EXPECT_EQ(error_of<Event>(R"({"Empty":{},"Empty":{}})"), "$: expected an object with one member, found more");
    EXPECT_EQ(error_of<Event>(R"({"deposited":{}})"),
              "$: unknown alternative 'deposited' (did you mean 'Deposited'? known: Empty, the-renamed, Deposited)");
    EXPECT_EQ(error_of<Event>(R"({"Deposited":{"cents":"5"}})"),
              "$.Deposited.cents: expected an integer, found a string");
}

struct Named {
    std::string name;
};

TEST(Json, a_field_called_name_does_not_name_its_alternative) {
    using Party = std::variant<Named, Renamed>;
    const std::string text = encode(Party{Named{"Ann"}});
    EXPECT_EQ(text, R"({"Named":{"name":"Ann"}})");
    EXPECT_EQ(encode(decoded<Party>(text)), text);
}

TEST(Json, maps_have_strings_integers_or_enums_as_keys) {
    const std::map<std::int16_t, std::string> numbers{{-5, "a"}, {300, "b"}};
    EXPECT_EQ(encode(numbers), R"({"-5":"a","300":"b"})");
    EXPECT_EQ((decoded<std::map<std::int16_t, std::string>>(encode(numbers))), numbers);
    const std::map<Channel, int> channels{{Channel::web, 1}};
    EXPECT_EQ(encode(channels), R"({"web":1})");
    EXPECT_EQ((decoded<std::map<Channel, int>>(encode(channels))), channels);
    const std::unordered_map<std::string, Line> lines{{"x", {"y", 1}}, {"", {"z", 2}}};
    EXPECT_EQ((decoded<std::unordered_map<std::string, Line>>(encode(lines))), lines);

    EXPECT_EQ((error_of<std::map<std::uint8_t, int>>(R"({"256":1})")), "$.256: 256 is not between 0 and 255");
    for (const char* key : {"", "x", "1x", "1.0", " 1", "+1", "01", "-0", "-"}) {
        EXPECT_FALSE((decode<std::map<int, int>>("{\""s + key + "\":1}"))) << key;
    }
}

TEST(Json, sequences_other_than_vector_are_arrays) {
    EXPECT_EQ(encode(decoded<std::list<int>>("[1,2]")), "[1,2]");
    EXPECT_EQ((decoded<std::array<int, 2>>("[1,2]")), (std::array{1, 2}));
    EXPECT_EQ((error_of<std::array<int, 2>>("[1]")), "$: expected an array of 2, found 1 elements");
    EXPECT_EQ((error_of<std::array<int, 2>>("[1,2,3]")), "$: expected an array of 2, found more elements");
}

TEST(Json, times_and_durations) {
    struct Timed {
        Time at;
        std::chrono::milliseconds took;
    };
    const Timed timed{parse_time("2026-01-31T12:00:00.000001Z"), -1500ms};
    const std::string text = R"({"at":"2026-01-31T12:00:00.000001Z","took":-1500})";
    EXPECT_EQ(encode(timed), text);
    EXPECT_EQ(decoded<Timed>(text).at, timed.at);
    EXPECT_EQ(decoded<Timed>(text).took, timed.took);
    EXPECT_EQ(error_of<Timed>(R"({"at":"noon"})"), "$.at: 'noon' is no time; write 2026-01-31T12:00:00Z");
    EXPECT_EQ(encode_error(Time::max()), "$: a time outside the years 0000 to 9999");
}

TEST(Json, a_raw_value_is_kept_verbatim) {
    struct Envelope {
        int id = 0;
        Raw data;
        std::optional<Raw> more;
    };
    for (const char* data : {R"({ "b" : 1.50, "a":[1e4, 2 ] , "x":{}})", "-0.0", "12345678901234567890123", "[]",
                             R"("a\u0041\n")", "null", "true", "{}", "[[],[{}]]"}) {
        const std::string text = R"({"id":1,"data": )"s + data + R"( ,"more":)" + data + "}";
        const auto envelope = decoded<Envelope>(text);
        EXPECT_EQ(envelope.data.text, data);
        EXPECT_EQ(envelope.id, 1);
        EXPECT_EQ(encode(envelope.data), data);
    }
    EXPECT_EQ(encode(Envelope{}), R"({"id":0,"data":null})");
    EXPECT_EQ(encode(decoded<std::vector<Raw>>("[ 1 , \"a,:\" ,[ 2 ]]")), R"([1,"a,:",[ 2 ]])");
    EXPECT_EQ(decoded<Raw>(" {\"a\" : 1} ").text, "{\"a\" : 1}");
    EXPECT_EQ(
        encode_error(Envelope{1, {"{"}, {}}),
        "$.data: a Raw that is no JSON value: $: expected a member's name or '}' at the end of the text (byte 1)");
    EXPECT_THROW((void)encode(Raw{""}), InvalidError);
    EXPECT_THROW((void)encode(Raw{"1 2"}), InvalidError);
}

// Errors and limits ---------------------------------------------------------------------------------------------------

TEST(Json, an_error_names_the_path_and_what_it_found) {
    EXPECT_EQ(error_of<Order>(R"({"lines":[{},{},{},{"cents":"5"}]})"),
              "$.lines[3].cents: expected an integer, found a string");
    EXPECT_EQ(error_of<Order>(R"({"ratings":{"a b":[1,true]}})"),
              "$.ratings[\"a b\"][1]: expected an integer, found a boolean");
    EXPECT_EQ(error_of<Order>(R"({"lines":{}})"), "$.lines: expected an array, found an object");
    EXPECT_EQ(error_of<Order>(R"({"id":[]})"), "$.id: expected a string, found an array");
    EXPECT_EQ(error_of<Order>("7"), "$: expected an object, found a number");
    EXPECT_EQ(error_of<bool>("0"), "$: expected a boolean, found a number");
}

TEST(Json, a_syntax_error_names_the_byte) {
    EXPECT_EQ(error_of<Order>(R"({"id":"a" "lines":[]})"), "$.id: expected ',' or '}' after a member at byte 10");
    EXPECT_EQ(error_of<Order>(R"({"id":tru})"), "$.id: not a JSON value at byte 9");
    EXPECT_EQ(error_of<Order>(""), "$: no value at the end of the text (byte 0)");
    EXPECT_EQ(error_of<Order>("{} {}"), "$: more text after the value at byte 3");
    EXPECT_EQ(error_of<Order>("{}\0"s), "$: more text after the value at byte 2");
    EXPECT_EQ(error_of<std::string>("\"a\nb\""), "$: a control character in a string at byte 2");
    for (const char* text : {"{\"id\":\"\",}", "{,}", "[1,]", "[,1]", "[1 2]", "{\"a\" 1}", "{1:2}", "{'a':1}", "nul",
                             "/* */ {}", "\xef\xbb\xbf{}", "{\"a\":1]", "[1}", "]", "\"\\x\"", "\"\\u12g4\""}) {
        EXPECT_FALSE(decode<Raw>(text)) << text;
    }
}

TEST(Json, no_beginning_of_a_text_is_taken_for_the_whole) {
    const std::string text =
        encode(Order{"o-1", {{"tea \"é\"", 420}}, "n", Channel::phone, {{"a", {1, -2}}}, {"sum", 1}});
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_FALSE(decode<Order>(text.substr(0, size))) << text.substr(0, size);
        EXPECT_FALSE(decode<Raw>(text.substr(0, size))) << text.substr(0, size);
    }
    EXPECT_TRUE(decode<Order>(text));
}

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, nesting_is_limited) {
    EXPECT_TRUE(decode<Raw>(nested(64)));
    EXPECT_EQ(error_of<Raw>(nested(65)), "$: nested deeper than 64 levels at byte 64");
    EXPECT_EQ(error_of<Line>("{\"skipped\":" + nested(64) + "}"), "$: nested deeper than 64 levels at byte 74");
    EXPECT_TRUE(decode<Line>("{\"skipped\":" + nested(63) + "}"));
    EXPECT_FALSE(decode<Raw>(std::string(1'000'000, '[')));
    // Deep input needs no call stack, however high the limit.
    EXPECT_TRUE(decode<Raw>(nested(1'000'000), {.depth_max = 1'000'000}));

    Tree tree;
    for (int i = 0; i < 40; ++i) tree = Tree{i, {std::move(tree)}};
    EXPECT_NE(encode_error(tree).find("nested deeper than 64 levels"), std::string::npos);
    const std::string text = encode(tree, {.depth_max = 1000});
    EXPECT_EQ(decoded<Tree>(text, {.depth_max = 1000}), tree);
    EXPECT_NE(error_of<Tree>(text).find("nested deeper than 64 levels"), std::string::npos);
    EXPECT_THROW((void)encode(std::vector<Raw>{{nested(64)}}), InvalidError);
    EXPECT_NO_THROW((void)encode(std::vector<Raw>{{nested(63)}}));
}

TEST(Json, the_length_is_limited) {
    EXPECT_EQ(error_of<Raw>("[1,2,3]", {.bytes_max = 6}), "$: the text has 7 bytes, more than the 6 allowed");
    EXPECT_TRUE(decode<Raw>("[1,2,3]", {.bytes_max = 7}));
    EXPECT_NE(encode_error(std::vector{1, 2, 3}, {.bytes_max = 6}).find("longer than 6 bytes"), std::string::npos);
    EXPECT_EQ(encode(std::vector{1, 2, 3}, {.bytes_max = 7}), "[1,2,3]");
    EXPECT_FALSE(decode<Raw>("\"" + std::string(16 * 1024 * 1024, 'x') + "\""));
}

// Names ---------------------------------------------------------------------------------------------------------------

template <class T>
struct Templated {};

TEST(TypeName, is_unqualified) {
    struct Local {};
    static_assert(type_name<Deposited>() == "Deposited");
    static_assert(type_name<Renamed>() == "Renamed");
    static_assert(type_name<Local>() == "Local");
    static_assert(type_name<Channel>() == "Channel");
    static_assert(type_name<int>() == "int");
    EXPECT_TRUE(type_name<Templated<Deposited>>().starts_with("Templated<"));
}

}  // namespace
}  // namespace varve::json
