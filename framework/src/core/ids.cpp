#include <varve/core/ids.h>

#include <charconv>

namespace varve {

std::string uuid7(Runtime runtime) {
    const auto milliseconds =
        std::chrono::floor<std::chrono::milliseconds>(runtime.clock.get().now()).time_since_epoch().count();
    const std::uint64_t high =
        (static_cast<std::uint64_t>(milliseconds) << 16) | 0x7000 | (runtime.random.get().next() & 0x0fff);
    const std::uint64_t low = 0x8000'0000'0000'0000 | (runtime.random.get().next() & 0x3fff'ffff'ffff'ffff);

    static constexpr char hex[] = "0123456789abcdef";
    std::string id;
    id.reserve(36);
    for (int nibble = 0; nibble < 32; ++nibble) {
        if (nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20) id += '-';
        const std::uint64_t half = nibble < 16 ? high : low;
        id += hex[(half >> (60 - 4 * (nibble % 16))) & 0xf];
    }
    return id;
}

std::optional<Time> time_of(std::string_view id) {
    if (id.size() < 36 || id[8] != '-' || id[13] != '-' || id[14] != '7') return std::nullopt;
    std::string digits{id.substr(0, 8)};
    digits += id.substr(9, 4);
    std::uint64_t milliseconds = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), milliseconds, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return Time{std::chrono::milliseconds{static_cast<std::int64_t>(milliseconds)}};
}

}  // namespace varve
