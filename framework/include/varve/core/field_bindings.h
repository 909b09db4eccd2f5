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
#define VARVE_FIELDS_1(each) each(1)
#define VARVE_FIELDS_2(each) VARVE_FIELDS_1(each), each(2)
#define VARVE_FIELDS_3(each) VARVE_FIELDS_2(each), each(3)
#define VARVE_FIELDS_4(each) VARVE_FIELDS_3(each), each(4)
#define VARVE_FIELDS_5(each) VARVE_FIELDS_4(each), each(5)
#define VARVE_FIELDS_6(each) VARVE_FIELDS_5(each), each(6)
#define VARVE_FIELDS_7(each) VARVE_FIELDS_6(each), each(7)
#define VARVE_FIELDS_8(each) VARVE_FIELDS_7(each), each(8)
#define VARVE_FIELDS_9(each) VARVE_FIELDS_8(each), each(9)
#define VARVE_FIELDS_10(each) VARVE_FIELDS_9(each), each(10)
#define VARVE_FIELDS_11(each) VARVE_FIELDS_10(each), each(11)
#define VARVE_FIELDS_12(each) VARVE_FIELDS_11(each), each(12)
#define VARVE_FIELDS_13(each) VARVE_FIELDS_12(each), each(13)
#define VARVE_FIELDS_14(each) VARVE_FIELDS_13(each), each(14)
#define VARVE_FIELDS_15(each) VARVE_FIELDS_14(each), each(15)
#define VARVE_FIELDS_16(each) VARVE_FIELDS_15(each), each(16)
#define VARVE_FIELDS_17(each) VARVE_FIELDS_16(each), each(17)
#define VARVE_FIELDS_18(each) VARVE_FIELDS_17(each), each(18)
#define VARVE_FIELDS_19(each) VARVE_FIELDS_18(each), each(19)
#define VARVE_FIELDS_20(each) VARVE_FIELDS_19(each), each(20)
#define VARVE_FIELDS_21(each) VARVE_FIELDS_20(each), each(21)
#define VARVE_FIELDS_22(each) VARVE_FIELDS_21(each), each(22)
#define VARVE_FIELDS_23(each) VARVE_FIELDS_22(each), each(23)
#define VARVE_FIELDS_24(each) VARVE_FIELDS_23(each), each(24)
#define VARVE_FIELDS_25(each) VARVE_FIELDS_24(each), each(25)
#define VARVE_FIELDS_26(each) VARVE_FIELDS_25(each), each(26)
#define VARVE_FIELDS_27(each) VARVE_FIELDS_26(each), each(27)
#define VARVE_FIELDS_28(each) VARVE_FIELDS_27(each), each(28)
#define VARVE_FIELDS_29(each) VARVE_FIELDS_28(each), each(29)
#define VARVE_FIELDS_30(each) VARVE_FIELDS_29(each), each(30)
#define VARVE_FIELDS_31(each) VARVE_FIELDS_30(each), each(31)
#define VARVE_FIELDS_32(each) VARVE_FIELDS_31(each), each(32)
#define VARVE_FIELDS_33(each) VARVE_FIELDS_32(each), each(33)
#define VARVE_FIELDS_34(each) VARVE_FIELDS_33(each), each(34)
#define VARVE_FIELDS_35(each) VARVE_FIELDS_34(each), each(35)
#define VARVE_FIELDS_36(each) VARVE_FIELDS_35(each), each(36)
#define VARVE_FIELDS_37(each) VARVE_FIELDS_36(each), each(37)
#define VARVE_FIELDS_38(each) VARVE_FIELDS_37(each), each(38)
#define VARVE_FIELDS_39(each) VARVE_FIELDS_38(each), each(39)
#define VARVE_FIELDS_40(each) VARVE_FIELDS_39(each), each(40)
#define VARVE_FIELDS_41(each) VARVE_FIELDS_40(each), each(41)
#define VARVE_FIELDS_42(each) VARVE_FIELDS_41(each), each(42)
#define VARVE_FIELDS_43(each) VARVE_FIELDS_42(each), each(43)
#define VARVE_FIELDS_44(each) VARVE_FIELDS_43(each), each(44)
#define VARVE_FIELDS_45(each) VARVE_FIELDS_44(each), each(45)
#define VARVE_FIELDS_46(each) VARVE_FIELDS_45(each), each(46)
#define VARVE_FIELDS_47(each) VARVE_FIELDS_46(each), each(47)
#define VARVE_FIELDS_48(each) VARVE_FIELDS_47(each), each(48)
#define VARVE_FIELDS_49(each) VARVE_FIELDS_48(each), each(49)
#define VARVE_FIELDS_50(each) VARVE_FIELDS_49(each), each(50)
#define VARVE_FIELDS_51(each) VARVE_FIELDS_50(each), each(51)
#define VARVE_FIELDS_52(each) VARVE_FIELDS_51(each), each(52)
#define VARVE_FIELDS_53(each) VARVE_FIELDS_52(each), each(53)
#define VARVE_FIELDS_54(each) VARVE_FIELDS_53(each), each(54)
#define VARVE_FIELDS_55(each) VARVE_FIELDS_54(each), each(55)
#define VARVE_FIELDS_56(each) VARVE_FIELDS_55(each), each(56)
#define VARVE_FIELDS_57(each) VARVE_FIELDS_56(each), each(57)
#define VARVE_FIELDS_58(each) VARVE_FIELDS_57(each), each(58)
#define VARVE_FIELDS_59(each) VARVE_FIELDS_58(each), each(59)
#define VARVE_FIELDS_60(each) VARVE_FIELDS_59(each), each(60)
#define VARVE_FIELDS_61(each) VARVE_FIELDS_60(each), each(61)
#define VARVE_FIELDS_62(each) VARVE_FIELDS_61(each), each(62)
#define VARVE_FIELDS_63(each) VARVE_FIELDS_62(each), each(63)
#define VARVE_FIELDS_64(each) VARVE_FIELDS_63(each), each(64)
#define VARVE_FIELDS_65(each) VARVE_FIELDS_64(each), each(65)
#define VARVE_FIELD(i) field##i
#define VARVE_NO_INITIALISER(i) {}
#define VARVE_FIELD_POINTER(i) FieldPointer{&field##i}
#define VARVE_FIELD_ADDRESS(i) &field##i

// fits: T{{}, {}, ...} is valid with that many braces. Each pair of braces initialises exactly one field, even an array
// or a nested struct. So the largest number that fits is the number of fields.
#define VARVE_FIELD_BINDINGS(n)                                     \
    template <>                                                     \
    struct FieldBindings<n> {                                       \
        template <class T>                                          \
        static constexpr bool fits =                                \
            requires { T{VARVE_FIELDS_##n(VARVE_NO_INITIALISER)}; }; \
        template <class T>                                          \
        static consteval auto pointers() {                          \
            auto& [VARVE_FIELDS_##n(VARVE_FIELD)] = ghost<T>.object; \
            return FieldPointers<VARVE_FIELDS_##n(VARVE_FIELD_POINTER)>{}; \
        }                                                           \
        template <class T>                                          \
        static void* address(T& object, std::size_t index) {        \
            auto& [VARVE_FIELDS_##n(VARVE_FIELD)] = object;         \
            void* const fields[] = {VARVE_FIELDS_##n(VARVE_FIELD_ADDRESS)}; \
            return fields[index];                                   \
        }                                                           \
    };

VARVE_FIELD_BINDINGS(1) VARVE_FIELD_BINDINGS(2) VARVE_FIELD_BINDINGS(3) VARVE_FIELD_BINDINGS(4) VARVE_FIELD_BINDINGS(5)
VARVE_FIELD_BINDINGS(6) VARVE_FIELD_BINDINGS(7) VARVE_FIELD_BINDINGS(8) VARVE_FIELD_BINDINGS(9) VARVE_FIELD_BINDINGS(10)
VARVE_FIELD_BINDINGS(11) VARVE_FIELD_BINDINGS(12) VARVE_FIELD_BINDINGS(13) VARVE_FIELD_BINDINGS(14) VARVE_FIELD_BINDINGS(15)
VARVE_FIELD_BINDINGS(16) VARVE_FIELD_BINDINGS(17) VARVE_FIELD_BINDINGS(18) VARVE_FIELD_BINDINGS(19) VARVE_FIELD_BINDINGS(20)
VARVE_FIELD_BINDINGS(21) VARVE_FIELD_BINDINGS(22) VARVE_FIELD_BINDINGS(23) VARVE_FIELD_BINDINGS(24) VARVE_FIELD_BINDINGS(25)
VARVE_FIELD_BINDINGS(26) VARVE_FIELD_BINDINGS(27) VARVE_FIELD_BINDINGS(28) VARVE_FIELD_BINDINGS(29) VARVE_FIELD_BINDINGS(30)
VARVE_FIELD_BINDINGS(31) VARVE_FIELD_BINDINGS(32) VARVE_FIELD_BINDINGS(33) VARVE_FIELD_BINDINGS(34) VARVE_FIELD_BINDINGS(35)
VARVE_FIELD_BINDINGS(36) VARVE_FIELD_BINDINGS(37) VARVE_FIELD_BINDINGS(38) VARVE_FIELD_BINDINGS(39) VARVE_FIELD_BINDINGS(40)
VARVE_FIELD_BINDINGS(41) VARVE_FIELD_BINDINGS(42) VARVE_FIELD_BINDINGS(43) VARVE_FIELD_BINDINGS(44) VARVE_FIELD_BINDINGS(45)
VARVE_FIELD_BINDINGS(46) VARVE_FIELD_BINDINGS(47) VARVE_FIELD_BINDINGS(48) VARVE_FIELD_BINDINGS(49) VARVE_FIELD_BINDINGS(50)
VARVE_FIELD_BINDINGS(51) VARVE_FIELD_BINDINGS(52) VARVE_FIELD_BINDINGS(53) VARVE_FIELD_BINDINGS(54) VARVE_FIELD_BINDINGS(55)
VARVE_FIELD_BINDINGS(56) VARVE_FIELD_BINDINGS(57) VARVE_FIELD_BINDINGS(58) VARVE_FIELD_BINDINGS(59) VARVE_FIELD_BINDINGS(60)
VARVE_FIELD_BINDINGS(61) VARVE_FIELD_BINDINGS(62) VARVE_FIELD_BINDINGS(63) VARVE_FIELD_BINDINGS(64) VARVE_FIELD_BINDINGS(65)
// clang-format on

}  // namespace varve::detail
