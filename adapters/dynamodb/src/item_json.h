#pragma once

#include "table.h"

#include <varve/store/item.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

// How an item is stored, for anybody who reads or writes it with another client:
//
//     item      := { key attributes, attributes }      one flat map; the key's are named by the table's schema
//     attribute := name ":" value
//     value     := {"S": text} | {"N": integer of 64 bits} | {"B": base64 of the bytes}
//
// The partition key is S; a sort key is N or S. Attributes of other types, and numbers that are no 64-bit integers, are
// somebody else's: they are passed over when an item is read, and stay as they are when it is updated.

namespace varve::dynamodb {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void write_string(Writer& writer, std::string_view text);
/// {"S":"text"}
void write_value(Writer& writer, const store::Value& value);
/// The members of the key's object, without its braces.
void write_key_members(Writer& writer, const Table& table, const store::Key& key);
void write_key(Writer& writer, const Table& table, const store::Key& key);
void write_item(Writer& writer, const Table& table, const store::Key& key, const store::Item& item);

/// Throws CorruptionError if the text is no JSON object by RFC 8259, in UTF-8 without NUL and surrogates that are
/// alone; `what` names it. Numbers become false: DynamoDB writes those of items as texts, and nobody reads others.
rapidjson::Document parse_object(std::string_view text, std::string_view what);

/// Without the attributes of the key. Throws CorruptionError if an attribute is not of the form above.
store::Item parse_item(const rapidjson::Value& object, const Table& table);
/// Throws CorruptionError if an attribute of the key is missing or of another type than the table's.
store::Key parse_key(const rapidjson::Value& object, const Table& table);

/// The integer that `number` is, in any notation of DynamoDB's ("12", "1.2E1"); nullopt if it has a fraction or more
/// than 64 bits.
std::optional<std::int64_t> exact_integer(std::string_view number);

}  // namespace varve::dynamodb
