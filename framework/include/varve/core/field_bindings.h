#pragma once

#include <cstddef>

// Structured bindings cannot take their number from a template parameter, so each number of fields up to
// `fields_max` has a specialisation here. reflect.h is the only user.

namespace varve::detail {

/// The largest number of fields of a plain struct. The specialisation after it only notices one field too many.
inline constexpr std::size_t fields_max = 64;

/// A field as a template argument, from which the compiler's spelling gives the field's name. (clang 14 takes a pointer
/// into an object only inside a class.)
template <class T>
struct FieldPointer {
    T* pointer;
};
template <class T>
FieldPointer(T*) -> FieldPointer<T>;

template <auto... pointers>
struct FieldPointers {};

/// A place for a T to point into at compile time. No T is ever made or read there; only its fields are named.
template <class T>
union Ghost {
    constexpr Ghost() : nothing{} {}
    constexpr ~Ghost() {}

    char nothing;
    T object;
};

// clang insists on a definition, and emits nothing for it. g++ needs none, and would emit it.
#ifdef __clang__
template <class T>
inline constinit Ghost<T> ghost;
#else
template <class T>
extern Ghost<T> ghost;
#endif

template <std::size_t count>
struct FieldBindings;

template <>
struct FieldBindings<0> {
    template <class T>
    static consteval auto pointers() {
        return FieldPointers<>{};
    }
    template <class T>
    static void* address(T&, std::size_t) {
        return nullptr;
    }
};

// clang-format off
// each(t0), each(t1) …: the first of ten whose names begin with the digit t
#define VARVE_ONES_1(each, t) each(t##0)
#define VARVE_ONES_2(each, t) VARVE_ONES_1(each, t), each(t##1)
#define VARVE_ONES_3(each, t) VARVE_ONES_2(each, t), each(t##2)
#define VARVE_ONES_4(each, t) VARVE_ONES_3(each, t), each(t##3)
#define VARVE_ONES_5(each, t) VARVE_ONES_4(each, t), each(t##4)
#define VARVE_ONES_6(each, t) VARVE_ONES_5(each, t), each(t##5)
#define VARVE_ONES_7(each, t) VARVE_ONES_6(each, t), each(t##6)
#define VARVE_ONES_8(each, t) VARVE_ONES_7(each, t), each(t##7)
#define VARVE_ONES_9(each, t) VARVE_ONES_8(each, t), each(t##8)
#define VARVE_ONES_10(each, t) VARVE_ONES_9(each, t), each(t##9)
// All that come before the digit t, each with a comma after it.
#define VARVE_TENS_0(each)
#define VARVE_TENS_1(each) VARVE_TENS_0(each) VARVE_ONES_10(each, 0),
#define VARVE_TENS_2(each) VARVE_TENS_1(each) VARVE_ONES_10(each, 1),
#define VARVE_TENS_3(each) VARVE_TENS_2(each) VARVE_ONES_10(each, 2),
#define VARVE_TENS_4(each) VARVE_TENS_3(each) VARVE_ONES_10(each, 3),
#define VARVE_TENS_5(each) VARVE_TENS_4(each) VARVE_ONES_10(each, 4),
#define VARVE_TENS_6(each) VARVE_TENS_5(each) VARVE_ONES_10(each, 5),
#define VARVE_FIELDS(tens, ones, each) VARVE_TENS_##tens(each) VARVE_ONES_##ones(each, tens)
#define VARVE_FIELD(i) field##i
#define VARVE_NO_INITIALISER(i) {}
#define VARVE_FIELD_POINTER(i) FieldPointer{&field##i}
#define VARVE_FIELD_ADDRESS(i) &field##i

// fits: T{{}, {}, ...} is valid with that many braces. Each pair of braces initialises exactly one field, even an array
// or a nested struct. So the largest number that fits is the number of fields.
#define VARVE_FIELD_BINDINGS(tens, ones)                                                                \
    template <>                                                                                         \
    struct FieldBindings<tens * 10 + ones> {                                                            \
        template <class T>                                                                              \
        static constexpr bool fits = requires { T{VARVE_FIELDS(tens, ones, VARVE_NO_INITIALISER)}; };   \
        template <class T>                                                                              \
        static consteval auto pointers() {                                                              \
            auto& [VARVE_FIELDS(tens, ones, VARVE_FIELD)] = ghost<T>.object;                            \
            return FieldPointers<VARVE_FIELDS(tens, ones, VARVE_FIELD_POINTER)>{};                      \
        }                                                                                               \
        template <class T>                                                                              \
        static void* address(T& object, std::size_t index) {                                            \
            auto& [VARVE_FIELDS(tens, ones, VARVE_FIELD)] = object;                                     \
            void* const fields[] = {VARVE_FIELDS(tens, ones, VARVE_FIELD_ADDRESS)};                     \
            return fields[index];                                                                       \
        }                                                                                               \
    };
#define VARVE_TEN_FIELD_BINDINGS(t)                                                                     \
    VARVE_FIELD_BINDINGS(t, 1) VARVE_FIELD_BINDINGS(t, 2) VARVE_FIELD_BINDINGS(t, 3)                    \
    VARVE_FIELD_BINDINGS(t, 4) VARVE_FIELD_BINDINGS(t, 5) VARVE_FIELD_BINDINGS(t, 6)                    \
    VARVE_FIELD_BINDINGS(t, 7) VARVE_FIELD_BINDINGS(t, 8) VARVE_FIELD_BINDINGS(t, 9) VARVE_FIELD_BINDINGS(t, 10)

VARVE_TEN_FIELD_BINDINGS(0) VARVE_TEN_FIELD_BINDINGS(1) VARVE_TEN_FIELD_BINDINGS(2) VARVE_TEN_FIELD_BINDINGS(3)
VARVE_TEN_FIELD_BINDINGS(4) VARVE_TEN_FIELD_BINDINGS(5)
VARVE_FIELD_BINDINGS(6, 1) VARVE_FIELD_BINDINGS(6, 2) VARVE_FIELD_BINDINGS(6, 3) VARVE_FIELD_BINDINGS(6, 4)
VARVE_FIELD_BINDINGS(6, 5)
// clang-format on

#undef VARVE_ONES_1
#undef VARVE_ONES_2
#undef VARVE_ONES_3
#undef VARVE_ONES_4
#undef VARVE_ONES_5
#undef VARVE_ONES_6
#undef VARVE_ONES_7
#undef VARVE_ONES_8
#undef VARVE_ONES_9
#undef VARVE_ONES_10
#undef VARVE_TENS_0
#undef VARVE_TENS_1
#undef VARVE_TENS_2
#undef VARVE_TENS_3
#undef VARVE_TENS_4
#undef VARVE_TENS_5
#undef VARVE_TENS_6
#undef VARVE_FIELDS
#undef VARVE_FIELD
#undef VARVE_NO_INITIALISER
#undef VARVE_FIELD_POINTER
#undef VARVE_FIELD_ADDRESS
#undef VARVE_FIELD_BINDINGS
#undef VARVE_TEN_FIELD_BINDINGS

}  // namespace varve::detail
