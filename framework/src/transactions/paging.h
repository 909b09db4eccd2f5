#pragma once

#include <varve/transactions/options.h>

#include <optional>
#include <string>
#include <string_view>

namespace varve::transactions {

// A page of a list ends with a token for the next one: what the list goes on from, behind a hash that says which list
// it is. It is base64, so that it may go through the hands of a web page.
//
//     token := base64 of: hash (16 hexadecimal digits) where it goes on (a sort key, a version, a scan's own token)

/// Empty where nothing follows. `list` names the list, for people too.
std::string token(std::string_view list, const std::optional<std::string>& at);
/// Where the page begins; nullopt: at the list's beginning. InvalidError for a limit of 0, and for a token of another
/// list, which names both.
std::optional<std::string> continued(std::string_view list, const PageOptions& page);
[[noreturn]] void throw_foreign_token(std::string_view list, const PageOptions& page);

}  // namespace varve::transactions
