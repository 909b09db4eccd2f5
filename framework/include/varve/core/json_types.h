#pragma once

#include <varve/core/clock.h>
#include <varve/core/reflect.h>
#include <varve/core/type_name.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

// Tables that describe C++ types to the compiled codec (src/core/json.cpp): one `Type` for each. It says what JSON
// stands for the type, and holds the few functions that only a template can write. json_refusals.h decides which types
// have a JSON form; others have no table. Users include json.h.

namespace varve::detail {

/// Whether T is an instance of a template: is_a<std::optional, T>.
template <template <class...> class Template, class T>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool is_a<Template, Template<Arguments...>> = true;

}  // namespace varve::detail

namespace varve::json {

/// Any JSON value, kept as text: it is decoded and encoded verbatim.
struct Raw {
    std::string text = "null";
};

namespace detail {

enum class Kind : std::uint8_t {
    boolean,
    signed_integer,    ///< of 1 to 8 bytes, also a duration's count
    unsigned_integer,  ///< of 1 to 8 bytes
    floating,          ///< of 4 or 8 bytes
    text,              ///< std::string
    time,              ///< varve::Time
    raw,
    enumeration,
    optional,
    sequence,
    map,
    variant,
    object,
};

struct Type;

struct Enumeration {
    std::string_view name;
    std::span<const varve::detail::Enumerator> enumerators;
    bool is_signed;
};

struct Optional {
    const Type* value;
    const void* (*get)(const void* optional);  ///< null when empty
    void* (*emplace)(void* optional);
    void (*reset)(void* optional);
};

/// Receives the elements of a container one by one; key is null in a sequence.
struct Visitor {
    virtual void visit(const void* key, const void* value) = 0;

  protected:
    ~Visitor() = default;
};

struct Sequence {
    const Type* element;
    std::size_t fixed_size;  ///< of a std::array; else `growing`
    void (*clear)(void* sequence);
    void* (*append)(void* sequence, std::size_t index);  ///< the new element's address
    void (*each)(const void* sequence, Visitor& visitor);

    static constexpr std::size_t growing = SIZE_MAX;
};

struct Map {
    const Type* key;  ///< text, an integer or an enumeration
    const Type* value;
    void (*clear)(void* map);
    void* (*insert)(void* map, void* key);  ///< moves from the key; null if it is there already
    void (*each)(const void* map, Visitor& visitor);
};

struct Alternative {
    std::string_view name;
    const Type* type;
    const void* (*get)(const void* variant);
    void* (*emplace)(void* variant);
};

struct Variant {
    std::span<const Alternative> alternatives;
    std::size_t (*index)(const void* variant);  ///< variant_npos when valueless
};

struct Field {
    std::string_view name;
    const Type* type;
};

struct Object {
    std::span<const Field> fields;
    void* (*address)(void* object, std::size_t field);
};

/// What one count of a duration stands for: `numerator / denominator` seconds.
struct Unit {
    std::intmax_t numerator;
    std::intmax_t denominator;
};

struct Type {
    Kind kind;
    std::uint8_t bytes = 0;  ///< of numbers and enumerations
    union {
        const Unit* unit;  ///< of integers; null: none
        const Enumeration* enumeration;
        const Optional* optional;
        const Sequence* sequence;
        const Map* map;
        const Variant* variant;
        const Object* object;
    };

    constexpr Type(Kind k, std::size_t size = 0) : kind(k), bytes(static_cast<std::uint8_t>(size)), unit(nullptr) {}
    constexpr Type(Kind k, std::size_t size, const Unit* u)
        : kind(k), bytes(static_cast<std::uint8_t>(size)), unit(u) {}
    constexpr Type(const Enumeration* e, std::size_t size)
        : kind(Kind::enumeration), bytes(static_cast<std::uint8_t>(size)), enumeration(e) {}
    constexpr Type(const Optional* o) : kind(Kind::optional), optional(o) {}
    constexpr Type(const Sequence* s) : kind(Kind::sequence), sequence(s) {}
    constexpr Type(const Map* m) : kind(Kind::map), map(m) {}
    constexpr Type(const Variant* v) : kind(Kind::variant), variant(v) {}
    constexpr Type(const Object* o) : kind(Kind::object), object(o) {}
};

/// The description of T. It is not constexpr: a type may contain itself through a vector or a map. One description
/// needs only the addresses of others.
template <class T>
struct TypeOf {
    static const Type value;
};

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t size>
inline constexpr bool is_array<std::array<T, size>> = true;

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = std::is_integral_v<Rep>;

template <class Period>
struct UnitOf {
    static constexpr Unit value{Period::num, Period::den};
};

template <class T>
concept Integer =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8;

/// std::vector, std::deque, std::list and their like; not vector<bool>, whose elements have no address.
template <class T>
concept GrowingSequence = requires(T& sequence) {
    { sequence.emplace_back() } -> std::same_as<typename T::value_type&>;
    sequence.clear();
};

/// std::map, std::unordered_map and their like.
template <class T>
concept MapLike = requires(T& map, typename T::key_type key) {
    { map.try_emplace(std::move(key)).first->second } -> std::same_as<typename T::mapped_type&>;
    map.clear();
};

template <class T>
concept MapKey = std::same_as<T, std::string> || Integer<T> || std::is_enum_v<T>;

template <class T>
struct EnumerationOf {
    static constexpr Enumeration value{type_name<T>(), varve::detail::Enumerators<T>::all,
                                       std::is_signed_v<std::underlying_type_t<T>>};
};

template <class T>
struct OptionalOf {
    using Value = typename T::value_type;
    static constexpr Optional value{
        &TypeOf<Value>::value,
        [](const void* optional) -> const void* {
            const T& self = *static_cast<const T*>(optional);
            return self ? std::addressof(*self) : nullptr;
        },
        [](void* optional) -> void* { return std::addressof(static_cast<T*>(optional)->emplace()); },
        [](void* optional) { static_cast<T*>(optional)->reset(); },
    };
};

template <class T>
void each_element(const void* sequence, Visitor& visitor) {
    for (const auto& element : *static_cast<const T*>(sequence)) visitor.visit(nullptr, std::addressof(element));
}

template <class T>
struct SequenceOf {
    static constexpr Sequence value{
        &TypeOf<typename T::value_type>::value,
        Sequence::growing,
        [](void* sequence) { static_cast<T*>(sequence)->clear(); },
        [](void* sequence, std::size_t) -> void* { return std::addressof(static_cast<T*>(sequence)->emplace_back()); },
        each_element<T>,
    };
};

template <class T>
struct ArrayOf {
    static constexpr Sequence value{
        &TypeOf<typename T::value_type>::value,
        std::tuple_size_v<T>,
        [](void*) {},
        [](void* sequence, std::size_t index) -> void* { return static_cast<T*>(sequence)->data() + index; },
        each_element<T>,
    };
};

template <class T>
struct MapOf {
    using Key = typename T::key_type;
    static constexpr Map value{
        &TypeOf<Key>::value,
        &TypeOf<typename T::mapped_type>::value,
        [](void* map) { static_cast<T*>(map)->clear(); },
        [](void* map, void* key) -> void* {
            const auto [at, inserted] = static_cast<T*>(map)->try_emplace(std::move(*static_cast<Key*>(key)));
            return inserted ? std::addressof(at->second) : nullptr;
        },
        [](const void* map, Visitor& visitor) {
            for (const auto& [key, element] : *static_cast<const T*>(map)) {
                visitor.visit(std::addressof(key), std::addressof(element));
            }
        },
    };
};

template <class V, class T>
inline constexpr Alternative alternative{
    stored_name<T>(),
    &TypeOf<T>::value,
    [](const void* variant) -> const void* { return std::get_if<T>(static_cast<const V*>(variant)); },
    [](void* variant) -> void* { return std::addressof(static_cast<V*>(variant)->template emplace<T>()); },
};

template <class T>
struct VariantOf;
template <class... Ts>
struct VariantOf<std::variant<Ts...>> {
    using V = std::variant<Ts...>;
    static constexpr Alternative alternatives[] = {alternative<V, Ts>...};
    static constexpr Variant value{
        alternatives,
        [](const void* variant) -> std::size_t { return static_cast<const V*>(variant)->index(); },
    };
};

template <class T>
struct ObjectOf {
    static constexpr std::size_t count = varve::detail::count_fields<T>();
    using Bindings = varve::detail::FieldBindings<count>;

    template <auto... pointers>
    static consteval std::array<Field, count> describe(varve::detail::FieldPointers<pointers...>) {
        return {Field{varve::detail::field_name<pointers>(),
                      &TypeOf<std::remove_pointer_t<decltype(pointers.pointer)>>::value}...};
    }

    static constexpr std::array<Field, count> fields = describe(Bindings::template pointers<T>());
    static constexpr Object value{
        fields,
        [](void* object, std::size_t field) { return Bindings::address(*static_cast<T*>(object), field); },
    };
};

template <class T>
consteval Type describe() {
    if constexpr (std::same_as<T, bool>) {
        return Type{Kind::boolean};
    } else if constexpr (Integer<T>) {
        return Type{std::is_signed_v<T> ? Kind::signed_integer : Kind::unsigned_integer, sizeof(T)};
    } else if constexpr (std::same_as<T, double> || std::same_as<T, float>) {
        return Type{Kind::floating, sizeof(T)};
    } else if constexpr (std::same_as<T, std::string>) {
        return Type{Kind::text};
    } else if constexpr (std::same_as<T, Time>) {
        return Type{Kind::time};
    } else if constexpr (is_duration<T>) {
        static_assert(sizeof(T) == sizeof(typename T::rep) && std::is_trivially_copyable_v<T>);
        return Type{describe<typename T::rep>().kind, sizeof(T), &UnitOf<typename T::period>::value};
    } else if constexpr (std::same_as<T, Raw>) {
        return Type{Kind::raw};
    } else if constexpr (std::is_enum_v<T>) {
        return Type{&EnumerationOf<T>::value, sizeof(T)};
    } else if constexpr (varve::detail::is_a<std::optional, T>) {
        return Type{&OptionalOf<T>::value};
    } else if constexpr (varve::detail::is_a<std::variant, T>) {
        return Type{&VariantOf<T>::value};
    } else if constexpr (is_array<T>) {
        return Type{&ArrayOf<T>::value};
    } else if constexpr (MapLike<T>) {
        return Type{&MapOf<T>::value};
    } else if constexpr (GrowingSequence<T>) {
        return Type{&SequenceOf<T>::value};
    } else {
        return Type{&ObjectOf<T>::value};
    }
}

template <class T>
constinit const Type TypeOf<T>::value = describe<T>();

}  // namespace detail
}  // namespace varve::json
