#pragma once

#include <varve/store/item.h>

#include <optional>
#include <string>
#include <string_view>

namespace varve::store {

// Bytes as text, for adapters of stores that speak JSON: base64 of RFC 4648, section 4, padded.

std::string base64(const Bytes& bytes);
/// nullopt if `text` is not padded base64.
std::optional<Bytes> parse_base64(std::string_view text);

}  // namespace varve::store
