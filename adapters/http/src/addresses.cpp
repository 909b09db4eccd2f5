#include "addresses.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace varve::http {
namespace {

using Bytes = std::array<std::uint8_t, 16>;

struct Range {
    Bytes begin;
    unsigned bits;
};

/// IPv4: special purposes, multicast and what is reserved.
constexpr Range special_ipv4[] = {
    {{0}, 8},
    {{10}, 8},
    {{100, 64}, 10},
    {{127}, 8},
    {{169, 254}, 16},
    {{172, 16}, 12},
    {{192, 0, 0}, 24},
    {{192, 0, 2}, 24},
    {{192, 88, 99}, 24},
    {{192, 168}, 16},
    {{198, 18}, 15},
    {{198, 51, 100}, 24},
    {{203, 0, 113}, 24},
    {{224}, 4},
    {{240}, 4},
};

/// Of IPv6 only global unicast is public, without these.
constexpr Range global_ipv6{{0x20}, 3};
constexpr Range special_ipv6[] = {
    {{0x20, 0x01, 0x00}, 23},        // protocol assignments, with Teredo
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x3f, 0xff, 0x00}, 20},        // documentation
};
constexpr Range mapped_ipv4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
constexpr Range translated_ipv4{{0x00, 0x64, 0xff, 0x9b}, 96};
constexpr Range in_6to4{{0x20, 0x02}, 16};

bool is_in(const Bytes& address, const Range& range) {
    for (unsigned bit = 0; bit < range.bits; bit += 8) {
        const unsigned left = std::min(range.bits - bit, 8U);
        const auto mask = static_cast<std::uint8_t>(0xff00U >> left);
        if ((address[bit / 8] & mask) != (range.begin[bit / 8] & mask)) return false;
    }
    return true;
}

bool is_public_ipv4(std::span<const std::uint8_t, 4> address) {
    Bytes bytes{};
    std::ranges::copy(address, bytes.begin());
    return std::ranges::none_of(special_ipv4, [&](const Range& range) { return is_in(bytes, range); });
}

bool is_public_ipv6(const Bytes& address) {
    const std::span<const std::uint8_t> bytes{address};
    if (is_in(address, mapped_ipv4) || is_in(address, translated_ipv4)) return is_public_ipv4(bytes.last<4>());
    if (is_in(address, in_6to4)) return is_public_ipv4(bytes.subspan<2, 4>());
    return is_in(address, global_ipv6) &&
           std::ranges::none_of(special_ipv6, [&](const Range& range) { return is_in(address, range); });
}

}  // namespace

bool is_public(const sockaddr& address) {
    if (address.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &address, sizeof v4);
        std::array<std::uint8_t, 4> bytes{};
        std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
        return is_public_ipv4(bytes);
    }
    if (address.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &address, sizeof v6);
        Bytes bytes{};
        std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
        return is_public_ipv6(bytes);
    }
    return false;
}

std::string to_string(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &address, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    } else if (address.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &address, sizeof v6);
        inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    }
    return text.data();
}

}  // namespace varve::http
