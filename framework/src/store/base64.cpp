#include <varve/store/base64.h>

#include <algorithm>
#include <array>

namespace varve::store {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(const Bytes& bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        unsigned group = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            group = group << 8 | (j < count ? std::to_integer<unsigned>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; ++j) text += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

std::optional<Bytes> parse_base64(std::string_view text) {
    static constexpr auto values = [] {
        std::array<signed char, 256> table{};
        table.fill(-1);
        for (std::size_t i = 0; i < digits.size(); ++i) {
            table[static_cast<unsigned char>(digits[i])] = static_cast<signed char>(i);
        }
        return table;
    }();
    if (text.size() % 4 != 0) return std::nullopt;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
    Bytes bytes;
    bytes.reserve(text.size() / 4 * 3);
    for (std::size_t i = 0; i < text.size(); i += 4) {
        const std::size_t count = i + 4 == text.size() ? 4 - padding : 4;
        unsigned group = 0;
        for (std::size_t j = 0; j < 4; ++j) {
            const int value = j < count ? values[static_cast<unsigned char>(text[i + j])] : 0;
            if (value < 0) return std::nullopt;
            group = group << 6 | static_cast<unsigned>(value);
        }
        for (std::size_t j = 0; j + 1 < count; ++j) bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * j)));
    }
    return bytes;
}

}  // namespace varve::store
