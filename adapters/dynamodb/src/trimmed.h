#pragma once

#include <algorithm>
#include <string_view>

namespace varve::dynamodb {

/// Without blanks and ends of lines at both ends.
inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const std::size_t first = std::min(text.find_first_not_of(blanks), text.size());
    return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

}  // namespace varve::dynamodb
