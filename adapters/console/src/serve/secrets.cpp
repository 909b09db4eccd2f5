#include "serve/secrets.h"

#include <varve/core/error.h>
#include <varve/store/open.h>

#include <algorithm>
#include <cctype>

namespace varve::console::serve {

namespace {

std::string decoded(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool is_escape = text[at] == '%' && at + 2 < text.size() &&
                               std::isxdigit(static_cast<unsigned char>(text[at + 1])) != 0 &&
                               std::isxdigit(static_cast<unsigned char>(text[at + 2])) != 0;
        plain += is_escape ? static_cast<char>(std::stoi(std::string{text.substr(at + 1, 2)}, nullptr, 16)) : text[at];
        if (is_escape) at += 2;
    }
    return plain;
}

bool is_secret(std::string_view option) {
    for (const char* word : {"password", "passwd", "secret", "token", "key"}) {
        if (option.find(word) != std::string_view::npos) return true;
    }
    return false;
}

}  // namespace

Secrets::Secrets(std::string_view url) {
    const auto add = [this](std::string_view secret) {
        if (secret.empty()) return;
        secrets_.emplace_back(secret);
        secrets_.push_back(decoded(secret));
    };
    const std::size_t begins = url.find("://");
    if (begins != std::string_view::npos) {
        std::string_view place = url.substr(begins + 3);
        // A password may have a "/" in it that should have been escaped, but hides until the last "@" all the same.
        place = place.substr(0, std::min(place.find('?'), place.size()));
        const std::size_t at = place.rfind('@');
        const std::size_t colon = place.find(':');
        if (at != std::string_view::npos && colon < at) add(place.substr(colon + 1, at - colon - 1));
    }
    try {
        for (const auto& [name, value] : store::parse_url(url).options) {
            if (is_secret(name)) add(value);
        }
    } catch (const Error&) {
        // No store is opened by such a URL.
    }
    // Longer ones first: one may be a part of another.
    std::ranges::sort(secrets_, std::greater{}, &std::string::size);
}

std::string Secrets::without(std::string text) const {
    constexpr std::string_view left_out = "***";
    for (const std::string& secret : secrets_) {
        for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += left_out.size())
            text.replace(at, secret.size(), left_out);
    }
    return text;
}

}  // namespace varve::console::serve
