#include <varve/commands/fingerprint.h>
#include <varve/core/fnv1a.h>

#include <array>
#include <cstdio>

namespace varve::detail {

std::string fingerprint(std::string_view stream, std::string_view kind, std::string_view contents) {
    std::string text;
    for (const std::string_view part : {stream, kind, contents}) append_contents(text, part);
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(fnv1a(text)));
    return digits.data();
}

}  // namespace varve::detail
