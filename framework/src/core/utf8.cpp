#include "core/utf8.h"

#include <cstdint>
#include <cstring>

namespace varve {

std::size_t find_invalid_utf8(std::string_view text) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };

    std::size_t i = 0;
    while (i < text.size()) {
        // Most text is ASCII, which is told eight bytes at a time.
        std::uint64_t word = 0;
        if (i + sizeof word <= text.size()) {
            std::memcpy(&word, text.data() + i, sizeof word);
            if ((word & 0x8080'8080'8080'8080) == 0) {
                i += sizeof word;
                continue;
            }
        }
        const unsigned lead = byte(i);
        const unsigned second = byte(i + 1);
        std::size_t length = 0;
        if (lead < 0x80) {
            length = 1;
        } else if (lead >= 0xc2 && lead <= 0xdf && continues(i + 1)) {
            length = 2;
        } else if (lead >= 0xe0 && lead <= 0xef && continues(i + 1) && continues(i + 2)) {
            const bool overlong = lead == 0xe0 && second < 0xa0;
            const bool surrogate = lead == 0xed && second >= 0xa0;
            if (!overlong && !surrogate) length = 3;
        } else if (lead >= 0xf0 && lead <= 0xf4 && continues(i + 1) && continues(i + 2) && continues(i + 3)) {
            const bool overlong = lead == 0xf0 && second < 0x90;
            const bool beyond = lead == 0xf4 && second >= 0x90;
            if (!overlong && !beyond) length = 4;
        }
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

}  // namespace varve
