#include <varve/store/base64.h>

#include <gtest/gtest.h>

namespace varve::store {
namespace {

Bytes bytes_of(std::string_view text) {
    Bytes bytes;
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
}

TEST(Base64, is_that_of_rfc_4648) {
    for (const auto& [plain, encoded] :
         std::initializer_list<std::pair<std::string_view, std::string_view>>{{"", ""},
                                                                              {"f", "Zg=="},
                                                                              {"fo", "Zm8="},
                                                                              {"foo", "Zm9v"},
                                                                              {"foob", "Zm9vYg=="},
                                                                              {"fooba", "Zm9vYmE="},
                                                                              {"foobar", "Zm9vYmFy"},
                                                                              {"\xfb\xff\xfe", "+//+"}}) {
        EXPECT_EQ(base64(bytes_of(plain)), encoded);
        EXPECT_EQ(parse_base64(encoded), bytes_of(plain)) << encoded;
    }
}

TEST(Base64, of_all_bytes_comes_back) {
    Bytes bytes;
    for (int i = 0; i < 256; ++i) {
        bytes.push_back(static_cast<std::byte>(i));
        EXPECT_EQ(parse_base64(base64(bytes)), bytes) << i;
    }
}

TEST(Base64, that_is_cut_or_has_other_characters_is_none) {
    for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9-", "Zm 9", "Zg==\n"})
        EXPECT_EQ(parse_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace varve::store
