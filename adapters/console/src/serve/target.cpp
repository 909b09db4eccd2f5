#include "serve/target.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <algorithm>
#include <utility>

namespace varve::console::serve {

namespace {

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

bool is_utf8(const std::string& text) {
    try {
        (void)json::quote(text);
        return true;
    } catch (const InvalidError&) {
        return false;
    }
}

std::optional<std::string> unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            plain += text[at];
            continue;
        }
        const int high = at + 2 < text.size() ? digit_of(text[at + 1]) : -1;
        const int low = at + 2 < text.size() ? digit_of(text[at + 2]) : -1;
        if (high < 0 || low < 0) return std::nullopt;
        plain += static_cast<char>(high * 16 + low);
        at += 2;
    }
    if (std::ranges::any_of(plain, is_control) || !is_utf8(plain)) return std::nullopt;
    return plain;
}

}  // namespace

std::optional<Target> parse_target(std::string_view target) {
    constexpr std::size_t bytes_max = 4096;
    if (target.size() > bytes_max || !target.starts_with('/')) return std::nullopt;
    const std::size_t mark = std::min(target.find('?'), target.size());
    std::string_view path = target.substr(1, mark - 1);
    std::string_view query = mark == target.size() ? std::string_view{} : target.substr(mark + 1);
    Target found;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/'), path.size());
        std::optional<std::string> part = unescaped(path.substr(0, end));
        if (!part) return std::nullopt;
        found.path.push_back(*std::move(part));
        if (end + 1 == path.size()) found.path.emplace_back();  // "/api/" is not "/api"
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        const std::size_t equals = std::min(pair.find('='), pair.size());
        std::optional<std::string> name = unescaped(pair.substr(0, equals));
        std::optional<std::string> value = unescaped(pair.substr(std::min(equals + 1, pair.size())));
        if (!name || !value || !found.query.try_emplace(*std::move(name), *std::move(value)).second)
            return std::nullopt;
        query.remove_prefix(std::min(end + 1, query.size()));
    }
    return found;
}

}  // namespace varve::console::serve
