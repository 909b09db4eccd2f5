#pragma once

namespace varve::detail {

/// Whether T is an instance of a template: is_a<std::optional, T>.
template <template <class...> class Template, class T>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_a<Template, Template<Arguments...>> = true;

}  // namespace varve::detail
