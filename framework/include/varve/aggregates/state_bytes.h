#pragma once

#include <varve/core/json_types.h>
#include <varve/core/reflect.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <variant>

// How much memory a state takes, for caches that are bounded by bytes. An aggregate may say so itself:
//
//     std::size_t bytes() const { return sizeof(*this) + picture.size(); }
//
// Otherwise its fields are walked: strings, containers, optionals, variants, unique_ptr, and plain structs of these.
// What the walk cannot look into (a class of one's own with private members, a shared_ptr) counts with its sizeof
// alone. An aggregate that holds much in such a place should say so.

namespace varve::detail {

template <class T>
concept SaysItsBytes = requires(const T& value) {
    { value.bytes() } -> std::convertible_to<std::size_t>;
};

/// What a value holds besides its own sizeof.
template <class T>
std::size_t bytes_beyond(const T& value) {
    constexpr std::size_t node_bytes = 4 * sizeof(void*);  // links, and what the allocator adds
    if constexpr (std::is_trivially_copyable_v<T>) {
        return 0;
    } else if constexpr (is_a<std::optional, T>) {
        return value ? bytes_beyond(*value) : 0;
    } else if constexpr (is_a<std::unique_ptr, T>) {
        return value ? sizeof(*value) + bytes_beyond(*value) : 0;
    } else if constexpr (is_a<std::variant, T>) {
        return value.valueless_by_exception() ? 0
                                              : std::visit([](const auto& one) { return bytes_beyond(one); }, value);
    } else if constexpr (is_a<std::pair, T>) {
        return bytes_beyond(value.first) + bytes_beyond(value.second);
    } else if constexpr (std::ranges::sized_range<const T>) {
        using Element = std::ranges::range_value_t<const T>;
        std::size_t bytes = 0;
        if constexpr (requires { value.capacity(); }) {
            // A short string lies within its own object.
            const auto* begin = reinterpret_cast<const std::byte*>(std::ranges::data(value));
            const auto* self = reinterpret_cast<const std::byte*>(&value);
            if (begin < self || begin >= self + sizeof(T)) bytes = value.capacity() * sizeof(Element);
        } else {
            bytes = std::ranges::size(value) * (sizeof(Element) + node_bytes);
        }
        if constexpr (!std::is_trivially_copyable_v<Element>) {
            for (const Element& one : value) bytes += bytes_beyond(one);
        }
        return bytes;
    } else if constexpr (has_fields<T>()) {
        std::size_t bytes = 0;
        for_each_field(value, [&](const auto& field) { bytes += bytes_beyond(field); });
        return bytes;
    } else {
        return 0;
    }
}

/// What a state takes in memory, roughly.
template <class T>
std::size_t state_bytes(const T& state) {
    if constexpr (SaysItsBytes<T>) {
        return state.bytes();
    } else {
        return sizeof(T) + bytes_beyond(state);
    }
}

}  // namespace varve::detail
