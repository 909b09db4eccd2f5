#pragma once

#include <varve/core/json.h>

#include <string_view>
#include <type_traits>

namespace varve {
namespace detail {

template <class T>
consteval auto refuse_read_model() {
    if constexpr (!requires { typename std::bool_constant<(std::string_view{*&T::table}.size() > 0)>; }) {
        return Refused<Rule::has_no_table, Type<T>>{};
    } else if constexpr (
        requires { &T::sorted; } && !requires { typename std::bool_constant<*&T::sorted>; }) {
        return Refused<Rule::has_bad_sorted, Type<T>>{};
    } else {
        return RefusedJson<T>{};
    }
}
template <class T>
using RefusedReadModel = decltype(refuse_read_model<T>());

}  // namespace detail

/// T's values are rows (projections/rows.h).
template <class T>
concept ReadModel = !detail::RefusedReadModel<T>::refused;

namespace detail {

template <ReadModel T>
constexpr bool is_sorted() {
    if constexpr (requires { T::sorted; }) {
        return T::sorted;
    } else {
        return false;
    }
}

}  // namespace detail

}  // namespace varve
