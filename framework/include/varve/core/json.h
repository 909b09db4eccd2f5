#pragma once

#include <varve/core/json_refusals.h>
#include <varve/core/result.h>

#include <cstddef>
#include <string>
#include <string_view>

/// JSON of plain structs: what events, commands, read models and messages are stored as. A plain struct is an aggregate
/// without base classes, with up to 64 fields; nothing is registered, the fields' names are the JSON names.
///
///     struct Line   { std::string product; std::int64_t cents = 0; };
///     struct Placed { std::string order; std::vector<Line> lines; std::optional<std::string> note; };
///
///     std::string text = json::encode(Placed{"o-1", {{"tea", 420}}, {}});
///     // {"order":"o-1","lines":[{"product":"tea","cents":420}]}
///     auto placed = json::decode<Placed>(text);
///     if (!placed) report(placed.error().message);   // $.lines[0].cents: expected an integer, found a string
///
/// | C++                                   | JSON                                                                  |
/// |---------------------------------------|-----------------------------------------------------------------------|
/// | bool, integers of 1 to 8 bytes        | true, 42; exact, refused where it does not fit                        |
/// | double, float                         | the shortest number that reads back the same; no NaN, no infinity     |
/// | std::string                           | a string; valid UTF-8 both ways, else refused                         |
/// | enum                                  | its enumerator's name; values from -128 to 255                        |
/// | varve::Time                           | "2026-01-31T12:00:00.000000Z"                                         |
/// | std::chrono::duration of integers     | its count                                                             |
/// | std::optional                         | left out of an object when empty; null is read as empty               |
/// | std::vector and its like, std::array  | an array                                                              |
/// | std::map and its like                 | an object; keys are strings, integers or enums                        |
/// | std::variant                          | {"Name":value}: T::name (a constexpr string_view), else the type name |
/// | json::Raw                             | any value, verbatim                                                   |
///
/// Reading is lenient where formats grow and strict elsewhere: unknown members are skipped; a missing one leaves its
/// field as the struct's definition has it; a repeated member, a number that does not fit, trailing text, a lone
/// surrogate, invalid UTF-8 and a number beyond the range of a double (also in what is skipped) are errors.
///
/// Threads: all functions may be called from any thread.
namespace varve::json {

/// What is wrong with a text.
struct DecodeError {
    std::string message;  ///< where and what, as "$.lines[3].cents: expected an integer, found a string"
};

struct DecodeOptions {
    std::size_t depth_max = 64;                ///< objects and arrays within each other
    std::size_t bytes_max = 16 * 1024 * 1024;  ///< of the whole text
    bool require_all = false;                  ///< a missing member is an error, unless its field is an optional
};

struct EncodeOptions {
    std::size_t depth_max = 64;                ///< objects and arrays within each other; a call stack of that depth
    std::size_t bytes_max = 16 * 1024 * 1024;  ///< of the whole text
};

namespace detail {

std::string encode(const Type& type, const void* value, const EncodeOptions& options);
/// The error's message, empty if there is none. The value is unspecified after an error.
std::string decode(const Type& type, void* value, std::string_view text, const DecodeOptions& options);
std::string shape(const Type& type);

}  // namespace detail

/// Compact JSON, members in the order of declaration. Throws an InvalidError that names the path for what JSON cannot
/// hold, and beyond the limits.
template <HasJson T>
std::string encode(const T& value, const EncodeOptions& options = {}) {
    return detail::encode(detail::TypeOf<T>::value, &value, options);
}
template <class T, VARVE_WHY(varve::detail::RefusedJson<T>)>
requires(!HasJson<T>) std::string encode(const T& value, const EncodeOptions& options = {})
VARVE_REFUSED;

/// The value, or what is wrong with the text.
template <HasJson T>
Result<T, DecodeError> decode(std::string_view text, const DecodeOptions& options = {}) {
    T value{};
    std::string message = detail::decode(detail::TypeOf<T>::value, &value, text, options);
    if (!message.empty()) return DecodeError{std::move(message)};
    return value;
}
template <class T, VARVE_WHY(varve::detail::RefusedJson<T>)>
requires(!HasJson<T>) Result<T, DecodeError> decode(std::string_view text, const DecodeOptions& options = {})
VARVE_REFUSED;

/// Describes the JSON that stands for a type, with the names and types of all fields within. Types of equal shapes read
/// each other's texts as they were meant. Programs should not take a shape apart.
template <HasJson T>
std::string shape() {
    return detail::shape(detail::TypeOf<T>::value);
}

/// Whether two texts are the same value. White space, the order of members and the notation of a number do not matter;
/// each digit does. False if either is not JSON.
bool same(std::string_view a, std::string_view b);

/// The text as a JSON string literal, quotes included. Throws InvalidError unless it is valid UTF-8.
std::string quote(std::string_view text);
/// For what only tells people something, as a log does: each byte that is no UTF-8 becomes a '?'.
std::string quote_lossy(std::string_view text);

}  // namespace varve::json
