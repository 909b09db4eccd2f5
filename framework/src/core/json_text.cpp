#include "core/json_text.h"

#include "core/utf8.h"

#include <varve/core/error.h>
#include <varve/core/json.h>
#include <varve/core/reflect.h>

#include <algorithm>

namespace varve::json {
namespace detail {

std::size_t append_quoted(std::string& out, std::string_view text) {
    if (const std::size_t invalid = find_invalid_utf8(text); invalid != std::string_view::npos) return invalid;
    static constexpr char hex[] = "0123456789abcdef";
    out += '"';
    std::size_t copied = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
        out.append(text, copied, i - copied);
        copied = i + 1;
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            default:
                out += "\\u00";
                out += hex[c >> 4];
                out += hex[c & 0xf];
        }
    }
    out.append(text, copied);
    out += '"';
    return std::string_view::npos;
}

void append_member(std::string& path, std::string_view name) {
    if (!name.empty() && name.size() <= 64 && std::ranges::all_of(name, varve::detail::is_identifier_part)) {
        path += '.';
        path += name;
    } else {
        path += '[';
        append_quoted(path, excerpt(name));
        path += ']';
    }
}

void append_index(std::string& path, std::size_t index) {
    path += '[';
    path += std::to_string(index);
    path += ']';
}

std::string excerpt(std::string_view text) {
    constexpr std::size_t bytes_max = 40;
    const bool whole = text.size() <= bytes_max;
    if (!whole) text = text.substr(0, bytes_max);
    text = text.substr(0, find_invalid_utf8(text));
    return std::string{text} + (whole ? "" : "...");
}

}  // namespace detail

std::string quote(std::string_view text) {
    std::string out;
    if (const std::size_t invalid = detail::append_quoted(out, text); invalid != std::string_view::npos) {
        throw InvalidError("a string is not valid UTF-8 at its byte " + std::to_string(invalid));
    }
    return out;
}

std::string quote_lossy(std::string_view text) {
    std::string valid{text};
    for (std::size_t at = 0, valid_bytes = 0;; at += valid_bytes + 1) {
        valid_bytes = find_invalid_utf8(std::string_view{valid}.substr(at));
        if (valid_bytes == std::string_view::npos) return quote(valid);
        valid[at + valid_bytes] = '?';
    }
}

}  // namespace varve::json
