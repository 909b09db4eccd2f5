#pragma once

#include <varve/store/condition.h>

#include <string>

namespace varve::postgres {

/// The condition as a predicate in the server's SQL/JSON path language, on an item as store/item_text.h writes it with
/// bytes in hexadecimal. Each part is true or false of every item that is there, never unknown.
std::string json_path(const store::Condition& condition);

/// `text` as a JSON string, which is also one of that language.
std::string json_string(std::string_view text);

}  // namespace varve::postgres
