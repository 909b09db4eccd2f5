#include "messages.h"

#include <algorithm>

namespace varve::dynamodb {
namespace {

constexpr std::size_t bytes_max = 500;
constexpr std::string_view left_out = "…";

/// "http://user:password@host" as "http://…@host". Nobody knows which characters a password has, so all goes from the
/// first URL's beginning to the last '@'.
void remove_user_info(std::string& text) {
    const std::size_t at = text.rfind('@');
    if (at == std::string::npos) return;
    std::size_t from = text.find("://");
    if (from < at) {
        from += 3;
    } else {
        // A proxy may be named without a scheme. An address of mail has no colon.
        from = text.find_last_of(" '\"=", at) + 1;
        if (text.find(':', from) > at) return;
    }
    text.replace(from, at - from, left_out);
}

/// How many bytes the character at the beginning takes; 0 if it is no UTF-8.
std::size_t character_bytes(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    const std::size_t bytes = lead < 0x80   ? 1
                              : lead < 0xc2 ? 0
                              : lead < 0xe0 ? 2
                              : lead < 0xf0 ? 3
                              : lead < 0xf5 ? 4
                                            : 0;
    if (bytes > text.size()) return 0;
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return 0;
    }
    const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
    return overlong || beyond ? 0 : bytes;
}

bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character.front());
    if (character.size() == 1) return first < 0x20 || first == 0x7f;
    return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string quotable(std::string_view text, std::span<const std::string> secrets) {
    std::string whole{text};
    for (const std::string& secret : secrets) {
        if (secret.empty()) continue;
        for (std::size_t at = 0; (at = whole.find(secret, at)) != std::string::npos;)
            whole.replace(at, secret.size(), left_out);
        // Whoever cut the text short may have cut the secret.
        constexpr std::size_t telling = 4;
        for (std::size_t bytes = std::min(secret.size(), whole.size()); bytes >= telling; --bytes) {
            if (!whole.ends_with(std::string_view{secret}.substr(0, bytes))) continue;
            whole.replace(whole.size() - bytes, bytes, left_out);
            break;
        }
    }
    remove_user_info(whole);
    std::string result;
    for (std::string_view rest = whole; !rest.empty();) {
        const std::size_t bytes = character_bytes(rest);
        const std::string_view character = rest.substr(0, std::max<std::size_t>(bytes, 1));
        if (result.size() + character.size() > bytes_max) return result.append(left_out);
        if (bytes == 0) {
            result += '?';
        } else if (is_control(character)) {
            result += ' ';
        } else {
            result += character;
        }
        rest.remove_prefix(character.size());
    }
    return result;
}

}  // namespace varve::dynamodb
