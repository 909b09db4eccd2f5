#pragma once

#include <cstdint>
#include <cstring>

namespace varve::json::detail {

// Integers and enums of 1 to 8 bytes whose type is only known by its size.

inline std::int64_t load_signed(const void* from, unsigned bytes) {
    const auto as = [from](auto value) -> std::int64_t {
        std::memcpy(&value, from, sizeof value);
        return value;
    };
    switch (bytes) {
        case 1: return as(std::int8_t{});
        case 2: return as(std::int16_t{});
        case 4: return as(std::int32_t{});
        default: return as(std::int64_t{});
    }
}

inline std::uint64_t load_unsigned(const void* from, unsigned bytes) {
    const auto as = [from](auto value) -> std::uint64_t {
        std::memcpy(&value, from, sizeof value);
        return value;
    };
    switch (bytes) {
        case 1: return as(std::uint8_t{});
        case 2: return as(std::uint16_t{});
        case 4: return as(std::uint32_t{});
        default: return as(std::uint64_t{});
    }
}

/// Keeps the low `bytes` bytes; the caller has checked that the rest says nothing.
inline void store(void* to, std::uint64_t value, unsigned bytes) {
    const auto as = [to](auto narrow) { std::memcpy(to, &narrow, sizeof narrow); };
    switch (bytes) {
        case 1: return as(static_cast<std::uint8_t>(value));
        case 2: return as(static_cast<std::uint16_t>(value));
        case 4: return as(static_cast<std::uint32_t>(value));
        default: return as(value);
    }
}

}  // namespace varve::json::detail
