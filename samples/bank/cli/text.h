#pragma once

#include <varve/core/clock.h>

#include <string>

namespace bank {

/// "2026-01-31 12:00:00" of a time's ISO form.
inline std::string short_time(varve::Time time) {
    std::string text = varve::to_string(time).substr(0, 19);
    text[10] = ' ';
    return text;
}

inline std::string padded(std::string text, std::size_t width) {
    std::size_t shown = 0;  // bytes that continue a character take no place
    for (const char c : text) shown += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return text + std::string(shown < width ? width - shown : 0, ' ');
}
inline std::string aligned(const std::string& text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace bank
