#pragma once

#include <string_view>

namespace varve {

/// The position of the first byte that is not part of valid UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing
/// beyond U+10FFFF), or npos.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace varve
