#pragma once

#include <concepts>
#include <string_view>
#include <typeinfo>

namespace varve {

/// T has a static member `name` that is text. A field of that name does not count.
template <class T>
concept NamesItself = requires {
    { *&T::name } -> std::convertible_to<std::string_view>;
};

namespace detail {

/// The compiler's own spelling of this function, T included; `auto` keeps other types out of it.
template <class T>
consteval auto spelled() {
    return __PRETTY_FUNCTION__;
}

/// From "... [with T = bank::Deposited]" (g++) or "... [T = bank::Deposited]" (clang) to "bank::Deposited".
consteval std::string_view qualified(std::string_view spelling) {
    const std::size_t begin = spelling.find("T = ") + 4;
    return spelling.substr(begin, spelling.rfind(']') - begin);
}

/// From "bank::Deposited" to "Deposited". Scopes inside template arguments and function signatures, as in
/// "Changed<bank::Limit>" and "run(int)::Local", do not count.
consteval std::string_view unqualified(std::string_view type) {
    std::size_t name = 0;
    int depth = 0;
    for (std::size_t i = 0; i < type.size(); ++i) {
        const char c = type[i];
        if (c == '<' || c == '(' || c == '{') ++depth;
        if (c == '>' || c == ')' || c == '}') --depth;
        if (c == ':' && depth == 0) name = i + 1;
    }
    return type.substr(name);
}

}  // namespace detail

/// The unqualified name of a type: "Deposited" for bank::Deposited. Every compiler gives the same, unless the type is a
/// template: a stored format must not rely on the spelling of template arguments.
template <class T>
consteval std::string_view type_name() {
    return detail::unqualified(detail::qualified(detail::spelled<T>()));
}

/// A type's name for messages, with its namespaces: "bank::Deposited". Compilers spell some types differently.
template <class T>
consteval std::string_view qualified_type_name() {
    return detail::qualified(detail::spelled<T>());
}

namespace detail {

constexpr bool is_identifier(std::string_view name) {
    for (const char c : name) {
        const bool is_part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                             static_cast<unsigned char>(c) >= 0x80;
        if (!is_part) return false;
    }
    return !name.empty();
}

}  // namespace detail

/// What a type is called in the store: its static `name`, if it has one, else type_name().
template <class T>
consteval std::string_view stored_name() {
    if constexpr (NamesItself<T>) return T::name;
    return type_name<T>();
}

/// A C++ type, and the name that its data are stored under.
struct NamedType {
    std::string_view name;      ///< "account"
    std::string_view cpp_name;  ///< "bank::Account", for messages
    const std::type_info& type;

    template <class T>
    static constexpr NamedType of(std::string_view name) {
        return {name, qualified_type_name<T>(), typeid(T)};
    }
};

}  // namespace varve
