#include <varve/aggregates/snapshots.h>

#include <array>
#include <charconv>
#include <cstdint>

namespace varve::detail {

std::string snapshot_schema(int version, const std::string& shape) {
    std::uint64_t hash = 14695981039346656037ull;  // FNV-1a, 64 bits
    for (const char c : shape) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
    const std::string hex{digits.data(), end};
    return std::to_string(version) + "-" + std::string(digits.size() - hex.size(), '0') + hex;
}

}  // namespace varve::detail
