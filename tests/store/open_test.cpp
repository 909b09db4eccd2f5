#include <varve/core/error.h>
#include <varve/store/open.h>

#include <gtest/gtest.h>

namespace varve::store {
namespace {

std::string error_of(auto call) {
    try {
        call();
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Open, a_url_is_taken_apart) {
    const Url url = parse_url("sqlite:dir/bank.db?synchronous=normal&name=a%20b%26");
    EXPECT_EQ(url.scheme, "sqlite");
    EXPECT_EQ(url.location, "dir/bank.db");
    EXPECT_EQ(url.options, (std::map<std::string, std::string>{{"synchronous", "normal"}, {"name", "a b&"}}));
}

TEST(Open, malformed_urls_say_what_is_wrong_and_show_no_value) {
    EXPECT_NE(error_of([] { parse_url("bank.db"); }).find("scheme"), std::string::npos);
    EXPECT_NE(error_of([] { parse_url("a:b?secret"); }).find("key=value"), std::string::npos);
    EXPECT_NE(error_of([] { parse_url("a:b?k=%zz"); }).find("hexadecimal"), std::string::npos);
    const std::string twice = error_of([] { parse_url("a:b?k=hidden&k=hidden"); });
    EXPECT_NE(twice.find("'k' twice"), std::string::npos);
    EXPECT_EQ(twice.find("hidden"), std::string::npos);
}

TEST(Open, an_unknown_scheme_or_option_lists_the_known_ones) {
    register_adapter({.scheme = "sample", .options = {"colour", "size"}, .open = [](const Url&) { return nullptr; }});
    EXPECT_NE(error_of([] { varve::open("sampel:x"); }).find("did you mean 'sample'?"), std::string::npos);
    EXPECT_NE(error_of([] { varve::open("sample://ann:a?secret=x@host"); }).find("%3F"), std::string::npos);
    EXPECT_EQ(error_of([] { varve::open("sample://ann:a?secret=x@host"); }).find("secret"), std::string::npos);
    EXPECT_NE(error_of([] { varve::open("sample:x?color=red"); }).find("did you mean 'colour'? known: colour, size"),
              std::string::npos);
    EXPECT_EQ(error_of([] { varve::open("sample:x?colour=red"); }), "no error");
}

}  // namespace
}  // namespace varve::store
