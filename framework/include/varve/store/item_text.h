#pragma once

#include <varve/store/item.h>

#include <string>
#include <string_view>

namespace varve::store {

// Items as text, for adapters of stores that keep JSON.

/// How bytes are written, which JSON has no value for.
enum class BytesText {
    base64,  ///< short
    hex,     ///< in the order of the bytes, for engines that compare
};

/// The text under which an item is stored: one JSON object, without white space, members in the byte order of their
/// names.
///
///     item    := '{' [member {',' member}] '}'
///     member  := name ':' value
///     value   := text | integer | bytes
///     text    := JSON string
///     integer := JSON number without fraction and exponent, -2^63 to 2^63 - 1
///     bytes   := '{"$bytes":"' base64 of RFC 4648 section 4, padded '"}'
///              | '{"$hex":"' two of 0-9 a-f for each '"}'
///
///     item_text({{"name", "Alice"}, {"cents", 5}})  // {"cents":5,"name":"Alice"}
std::string item_text(const Item& item, BytesText bytes = BytesText::base64);

/// The item that `text` tells of; white space and the order of members are of no account. Throws a CorruptionError that
/// says what is wrong and where in the text.
Item parse_item(std::string_view text);

}  // namespace varve::store
