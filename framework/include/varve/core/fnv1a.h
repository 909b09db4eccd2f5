#pragma once

#include <cstdint>
#include <string_view>

namespace varve {

/// A hash that is the same in every program and for ever: FNV-1a with 64 bits (Fowler, Noll and Vo). Not for keys that
/// an attacker may choose.
constexpr std::uint64_t fnv1a(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

}  // namespace varve
