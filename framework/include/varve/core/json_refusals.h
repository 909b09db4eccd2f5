#pragma once

#include <varve/core/json_types.h>
#include <varve/core/refusal.h>

#include <initializer_list>
#include <memory>
#include <tuple>
#include <vector>

// Which types have no JSON form, and why (refusal.h).

namespace varve::detail {

template <class T>
concept HasStaticName = requires {
    &T::name;
}
&&!std::is_member_pointer_v<decltype(&T::name)>;

/// A text that is known when it is compiled.
template <class T>
concept HasConstantName = NamesItself<T> && requires {
    typename std::bool_constant<(std::string_view{T::name}.size() > 0)>;
};

/// Why T cannot be stored under its name: its own, or the one that all compilers give it.
template <class T>
consteval auto refuse_name() {
    if constexpr (HasConstantName<T>) {
        return Fine{};
    } else if constexpr (HasStaticName<T>) {
        return Refused<Rule::has_bad_name, Type<T>>{};
    } else if constexpr (!is_identifier(type_name<T>())) {
        return Refused<Rule::has_a_compilers_name, Type<T>>{};
    } else {
        return Fine{};
    }
}
template <class T>
using RefusedName = decltype(refuse_name<T>());

consteval bool all_differ(std::initializer_list<std::string_view> names) {
    for (const std::string_view* one = names.begin(); one != names.end(); ++one) {
        for (const std::string_view* other = names.begin(); other != one; ++other) {
            if (*one == *other) return false;
        }
    }
    return true;
}

/// The first of these that is not Fine.
template <class First, class... Others>
consteval auto first_refused() {
    if constexpr (First::refused || sizeof...(Others) == 0) {
        return First{};
    } else {
        return first_refused<Others...>();
    }
}
template <class... Each>
using FirstRefused = decltype(first_refused<Fine, Each...>());

template <class T>
concept IsCharacter = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept IsPointer = std::is_pointer_v<T> || std::is_member_pointer_v<T> || is_a<std::unique_ptr, T> ||
    is_a<std::shared_ptr, T> || is_a<std::weak_ptr, T>;
template <class T>
concept HasKeys = requires {
    typename T::key_type;
    typename T::value_type;
};
template <class T>
concept HasMappedKeys = HasKeys<T> && requires {
    typename T::mapped_type;
};
template <class T>
concept IsNamed = (std::is_class_v<T> || std::is_enum_v<T>);

/// `Seen` are the structs around it: some contain themselves, through a vector or a map.
template <class Place, class T, class... Seen>
consteval auto refuse_json();

template <class T, class... Seen, auto... pointers>
consteval auto refuse_fields(FieldPointers<pointers...>) {
    return FirstRefused<decltype(refuse_json<FieldOf<T, pointers>, std::remove_pointer_t<decltype(pointers.pointer)>, T,
                                             Seen...>())...>{};
}

template <class Place, class T, class... Seen>
consteval auto refuse_struct() {
    using In = std::conditional_t<std::same_as<Place, Type<T>>, void, Place>;
    if constexpr (!std::is_aggregate_v<T>) {
        return Refused<Rule::is_no_plain_struct, Type<T>, In>{};
    } else if constexpr (HasBase<T>) {
        return Refused<Rule::has_base, Type<T>, In>{};
    } else if constexpr (!requires { T{}; }) {
        return Refused<Rule::needs_initialiser, Type<T>, In>{};
    } else if constexpr (count_fields<T>() > fields_max) {
        return Refused<Rule::has_too_many_fields, Type<T>, In>{};
    } else {
        return refuse_fields<T, Seen...>(FieldBindings<count_fields<T>()>::template pointers<T>());
    }
}

template <class Place, class V, class... Seen>
struct RefusedVariant;
template <class Place, class... Ts, class... Seen>
struct RefusedVariant<Place, std::variant<Ts...>, Seen...> {
    static consteval auto refuse() {
        using Names = FirstRefused<RefusedName<Ts>...>;
        if constexpr (!(IsNamed<Ts> && ...)) {
            return Refused<Rule::has_nameless_alternative, Place>{};
        } else if constexpr (Names::refused) {
            return Names{};
        } else if constexpr (!all_differ({stored_name<Ts>()...})) {
            return Refused<Rule::has_equal_alternatives, Place>{};
        } else {
            return FirstRefused<decltype(refuse_json<Type<Ts>, Ts, Seen...>())...>{};
        }
    }
};

template <class Place, class T, class... Seen>
consteval auto refuse_json() {
    using json::detail::GrowingSequence;
    using json::detail::MapLike;
    if constexpr ((std::same_as<T, Seen> || ...)) {
        return Fine{};
    } else if constexpr (std::is_const_v<T>) {
        return Refused<Rule::is_const, Place>{};
    } else if constexpr (IsCharacter<T>) {
        return Refused<Rule::is_character, Place>{};
    } else if constexpr (json::detail::Integer<T> || std::same_as<T, bool> || std::same_as<T, double> ||
                         std::same_as<T, float> || std::same_as<T, std::string> || std::same_as<T, Time> ||
                         std::same_as<T, json::Raw>) {
        return Fine{};
    } else if constexpr (is_a<std::basic_string, T>) {
        return Refused<Rule::is_wide_text, Place>{};
    } else if constexpr (is_a<std::basic_string_view, T>) {
        return Refused<Rule::is_view, Place>{};
    } else if constexpr (IsPointer<T>) {
        return Refused<Rule::is_pointer, Place>{};
    } else if constexpr (std::is_array_v<T>) {
        return Refused<Rule::is_c_array, Place>{};
    } else if constexpr (is_a<std::chrono::time_point, T>) {
        return Refused<Rule::is_time_point, Place>{};
    } else if constexpr (is_a<std::chrono::duration, T>) {
        if constexpr (json::detail::is_duration<T>) {
            return Fine{};
        } else {
            return Refused<Rule::is_fractional_duration, Place>{};
        }
    } else if constexpr (is_a<std::pair, T> || is_a<std::tuple, T>) {
        return Refused<Rule::is_pair, Place>{};
    } else if constexpr (std::is_enum_v<T>) {
        if constexpr (Enumerators<T>::all.empty()) {
            return Refused<Rule::is_empty_enum, Place>{};
        } else {
            return Fine{};
        }
    } else if constexpr (is_a<std::optional, T>) {
        if constexpr (is_a<std::optional, typename T::value_type>) {
            return Refused<Rule::is_optional_twice, Place>{};
        } else {
            return refuse_json<Place, typename T::value_type, Seen...>();
        }
    } else if constexpr (is_a<std::variant, T>) {
        return RefusedVariant<Place, T, Seen...>::refuse();
    } else if constexpr (json::detail::is_array<T>) {
        return refuse_json<Place, typename T::value_type, Seen...>();
    } else if constexpr (std::same_as<T, std::vector<bool>>) {
        return Refused<Rule::is_vector_of_bool, Place>{};
    } else if constexpr (MapLike<T>) {
        if constexpr (!json::detail::MapKey<typename T::key_type>) {
            return Refused<Rule::has_bad_key, Place>{};
        } else {
            return refuse_json<Place, typename T::mapped_type, Seen...>();
        }
    } else if constexpr (HasMappedKeys<T>) {
        return Refused<Rule::is_multimap, Place>{};
    } else if constexpr (HasKeys<T>) {
        return Refused<Rule::is_set, Place>{};
    } else if constexpr (GrowingSequence<T>) {
        return refuse_json<Place, typename T::value_type, Seen...>();
    } else if constexpr (std::is_class_v<T>) {
        return refuse_struct<Place, T, Seen...>();
    } else {
        return Refused<Rule::has_no_json_form, Place>{};
    }
}

template <class T>
using RefusedJson = decltype(refuse_json<Type<T>, T>());

}  // namespace varve::detail

namespace varve {

/// T has a JSON form.
template <class T>
concept HasJson = !detail::RefusedJson<T>::refused;

}  // namespace varve
