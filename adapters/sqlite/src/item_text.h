#pragma once

#include <varve/store/item.h>
#include <varve/store/item_store.h>

#include <string>
#include <string_view>

namespace varve::sqlite {

/// The text under which an item is stored: one JSON object, without white space, members in the byte order of their
/// names.
///
///     item    := '{' [member {',' member}] '}'
///     member  := name ':' value
///     value   := text | integer | bytes
///     text    := JSON string
///     integer := JSON number without fraction and exponent, -2^63 to 2^63 - 1
///     bytes   := '{"$bytes":"' base64 of RFC 4648 section 4, padded '"}'
std::string item_text(const store::Item& item);

/// The item that `text` tells of. Throws CorruptionError that says what is wrong and where in the text.
store::Item parse_item(std::string_view text);

}  // namespace varve::sqlite
