#pragma once

#include <varve/core/field_bindings.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

// What the codec must know of a user's types: the fields of a plain struct and the enumerators of an enum. Both come
// from the compiler's spelling of template arguments, at compile time, without macros or registration.

namespace varve::detail {

/// Converts to the base classes of T and to nothing else.
template <class T>
struct AnyBaseOf {
    template <class B>
    requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>) operator B() const;
};

template <class T>
concept HasBase = requires {
    T{AnyBaseOf<T>{}};
};

template <class T, std::size_t count = 0>
consteval std::size_t count_fields() {
    if constexpr (count <= fields_max) {
        if constexpr (FieldBindings<count + 1>::template fits<T>) return count_fields<T, count + 1>();
    }
    return count;
}

/// Whether T is a struct whose fields can be told.
template <class T>
constexpr bool has_fields() {
    if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
        if constexpr (!HasBase<T>) return count_fields<T>() <= fields_max;
    }
    return false;
}

/// Calls `each` with every field of `value`, in their order.
template <class T, class Each>
void for_each_field(const T& value, Each each) {
    using Bindings = FieldBindings<count_fields<T>()>;
    const auto visit = [&]<auto... pointers>(FieldPointers<pointers...>) {
        [[maybe_unused]] std::size_t field = 0;
        (each(*static_cast<const std::remove_pointer_t<decltype(pointers.pointer)>*>(
             Bindings::address(const_cast<T&>(value), field++))),
         ...);
    };
    visit(Bindings::template pointers<T>());
}

constexpr bool is_identifier_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

/// The identifier that a spelling ends with, trailing brackets aside: "cents" of "(& ghost<A>.A::cents)}; ".
constexpr std::string_view last_identifier(std::string_view spelling) {
    while (!spelling.empty() && !is_identifier_part(spelling.back())) spelling.remove_suffix(1);
    std::size_t begin = spelling.size();
    while (begin > 0 && is_identifier_part(spelling[begin - 1])) --begin;
    return spelling.substr(begin);
}

template <auto pointer>
consteval auto field_name() {
    return last_identifier(__PRETTY_FUNCTION__);
}

/// The values of `E` from `first` on as the compiler spells them: "bank::Colour::red, (bank::Colour)1, ...".
template <class E, E... values>
consteval auto spelled_values() {
    const std::string_view spelling = __PRETTY_FUNCTION__;
    const std::size_t begin = spelling.find("values = ") + 10;
    return spelling.substr(begin, spelling.find_last_of("}>") - begin);
}

struct Enumerator {
    std::string_view name;
    std::int64_t value;
};

/// The enumerators of E with a value from -128 to 255, in the order of their values. One function template is
/// instantiated for all candidates at once, which keeps a scan cheap.
template <class E>
struct Enumerators {
  private:
    using Underlying = std::underlying_type_t<E>;
    static constexpr std::int64_t first =
        std::is_signed_v<Underlying> ? -128 : 0;  // no integer type has a lowest value between the two
    static constexpr std::int64_t last = static_cast<std::uint64_t>(std::numeric_limits<Underlying>::max()) < 255
                                             ? static_cast<std::int64_t>(std::numeric_limits<Underlying>::max())
                                             : 255;

    template <std::int64_t... offsets>
    static constexpr std::string_view spelled(std::integer_sequence<std::int64_t, offsets...>) {
        return spelled_values<E, static_cast<E>(first + offsets)...>();
    }
    static constexpr std::string_view spelling = spelled(std::make_integer_sequence<std::int64_t, last - first + 1>{});

    /// Calls `found(name, value)` for each candidate that has a name.
    template <class Found>
    static constexpr void scan(Found found) {
        std::int64_t value = first;
        std::size_t begin = 0;
        int depth = 0;
        for (std::size_t i = 0; i <= spelling.size(); ++i) {
            const char c = i < spelling.size() ? spelling[i] : ',';
            if (c == '(' || c == '<' || c == '{') ++depth;
            if (c == ')' || c == '>' || c == '}') --depth;
            if (c != ',' || depth != 0) continue;
            const std::string_view name = last_identifier(spelling.substr(begin, i - begin));
            if (name.front() < '0' || name.front() > '9') found(name, value);
            begin = i + 1;
            ++value;
        }
    }
    static constexpr std::size_t count() {
        std::size_t n = 0;
        scan([&](std::string_view, std::int64_t) { ++n; });
        return n;
    }

    static constexpr auto collect() {
        std::array<Enumerator, count()> found{};
        std::size_t n = 0;
        scan([&](std::string_view name, std::int64_t value) { found[n++] = {name, value}; });
        return found;
    }

  public:
    static constexpr auto all = collect();
};

}  // namespace varve::detail
