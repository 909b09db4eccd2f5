#pragma once

#include <varve/core/json_types.h>
#include <varve/core/reflect.h>
#include <varve/core/type_name.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace varve::detail {

template <class T>
inline constexpr bool is_moment_or_duration = false;
template <class Rep, class Period>
inline constexpr bool is_moment_or_duration<std::chrono::duration<Rep, Period>> = true;
template <class Clock, class Duration>
inline constexpr bool is_moment_or_duration<std::chrono::time_point<Clock, Duration>> = true;

/// Appends what a command holds, the same in every process. What has no such form, a pointer or a function, adds
/// nothing; neither does an empty optional, so that a field of that kind can be added to a command later.
template <class T>
void append_contents(std::string& text, const T& value) {
    if constexpr (std::is_enum_v<T>) {
        append_contents(text, static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::integral<T>) {
        text += std::to_string(value) + ';';
    } else if constexpr (std::same_as<T, double>) {
        append_contents(text, std::bit_cast<std::uint64_t>(value));
    } else if constexpr (std::same_as<T, float>) {
        append_contents(text, std::bit_cast<std::uint32_t>(value));
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
        const std::string_view characters = value;
        text += std::to_string(characters.size()) + ':';
        text += characters;
    } else if constexpr (is_moment_or_duration<T>) {
        if constexpr (requires { value.count(); }) {
            append_contents(text, value.count());
        } else {
            append_contents(text, value.time_since_epoch());
        }
    } else if constexpr (is_a<std::optional, T> || is_a<std::unique_ptr, T> || is_a<std::shared_ptr, T>) {
        if (value) append_contents(text, *value);
    } else if constexpr (is_a<std::variant, T>) {
        append_contents(text, value.index());
        if (!value.valueless_by_exception()) std::visit([&](const auto& one) { append_contents(text, one); }, value);
    } else if constexpr (is_a<std::pair, T>) {
        append_contents(text, value.first);
        append_contents(text, value.second);
    } else if constexpr (requires { typename T::hasher; }) {
        std::vector<std::string> elements;
        for (const auto& one : value) append_contents(elements.emplace_back(), one);
        std::ranges::sort(elements);  // they are in another order in every process
        append_contents(text, elements);
    } else if constexpr (std::ranges::sized_range<const T>) {
        append_contents(text, std::ranges::size(value));
        for (const std::ranges::range_value_t<const T>& one : value) append_contents(text, one);
    } else if constexpr (has_fields<T>()) {
        text += '{';
        std::size_t number = 0;
        for_each_field(value, [&](const auto& field) {
            std::string contents;
            append_contents(contents, field);
            if (!contents.empty()) text += std::to_string(number) + '=' + contents;
            ++number;
        });
        text += '}';
    }
}

/// A type's own `name`, or its unqualified one without template arguments, which compilers spell as they like.
template <class Command>
constexpr std::string_view command_name() {
    if constexpr (NamesItself<Command>) return Command::name;
    return type_name<Command>().substr(0, type_name<Command>().find('<'));
}

/// What a command id stands for, in 16 hexadecimal digits: the stream, empty for several; the kind of command; what it
/// holds. Tells accidents, not forgers.
std::string fingerprint(std::string_view stream, std::string_view kind, std::string_view contents);

}  // namespace varve::detail
