#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace varve::json::detail {

/// Appends a string literal; returns the position of the first byte that is no valid UTF-8, or npos.
std::size_t append_quoted(std::string& out, std::string_view text);

/// A path through a value, begun with "$": ".cents", or ["odd name"], and [3].
void append_member(std::string& path, std::string_view name);
void append_index(std::string& path, std::size_t index);

/// A piece of somebody's input as it may stand in a message: cut short, and made valid.
std::string excerpt(std::string_view text);

/// Empty if `text` is one JSON value nested no deeper than `depth_max`, else what is wrong with it.
std::string check(std::string_view text, std::size_t depth_max);

}  // namespace varve::json::detail
