#include "messages.h"

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

const std::string secret = "s3cr3t-never-to-be-seen";

TEST(Messages, leave_out_the_user_and_password_of_a_url) {
    for (const std::string& url :
         {"http://user:" + secret + "@proxy:3128", "user:" + secret + "@proxy:3128", "http://u:@" + secret + "@proxy",
          "http://u:a b " + secret + "@ho st", "HTTPS://u:" + secret + "/x@proxy", "socks5h://" + secret + "@proxy"}) {
        const std::string message = quotable("Unsupported proxy syntax in '" + url + "': Bad hostname");
        EXPECT_EQ(message.find(secret), std::string::npos) << message;
        EXPECT_NE(message.find("Bad hostname"), std::string::npos) << message;
    }
    EXPECT_EQ(quotable("User: arn:aws:iam::1:user/me is not authorized"),
              "User: arn:aws:iam::1:user/me is not authorized");
    EXPECT_EQ(quotable("ask me@example.com: now"), "ask me@example.com: now");
}

TEST(Messages, leave_out_what_they_are_told_is_secret) {
    const std::vector<std::string> secrets{secret, "", "other"};
    EXPECT_EQ(quotable("a " + secret + secret + " and another", secrets), "a …… and an…");
    EXPECT_EQ(quotable("cut short: s3cr3t-nev", secrets), "cut short: …");
}

TEST(Messages, have_no_control_characters_and_are_utf8) {
    EXPECT_EQ(quotable("a\r\nb\x1b[31m\x7f\xc2\x9b \xc3\xa9 \xff\xc3 \xed\xa0\x80 \xf0\x9f\x98\x80"),
              "a  b [31m   \xc3\xa9 ?? ??? \xf0\x9f\x98\x80");
    EXPECT_EQ(quotable(std::string_view{"a\0b", 3}), "a b");
}

TEST(Messages, are_bounded_and_end_with_a_whole_character) {
    const std::string accents = quotable("x" + [] {
        std::string text;
        for (int i = 0; i < 1'000; ++i) text += "\xc3\xa9";
        return text;
    }());
    EXPECT_EQ(accents.size(), 499U + std::string_view{"…"}.size());
    EXPECT_TRUE(accents.ends_with("\xc3\xa9…"));
}

}  // namespace
}  // namespace varve::dynamodb
