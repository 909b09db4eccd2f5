#include <varve/aggregates/snapshots.h>
#include <varve/core/fnv1a.h>

#include <array>
#include <charconv>

namespace varve::detail {

std::string snapshot_schema(int version, const std::string& shape) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), fnv1a(shape), 16).ptr;
    const std::string hex{digits.data(), end};
    return std::to_string(version) + "-" + std::string(digits.size() - hex.size(), '0') + hex;
}

}  // namespace varve::detail
