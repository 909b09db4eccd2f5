#pragma once

#include <cassert>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

namespace varve {

/// Either a value or the reason why there is none. It is for what happens daily and the caller must branch on: a
/// rejected command, text that does not decode. What the world does to us is an exception instead (error.h).
///
///     Result<int, std::string> half(int n) { if (n % 2) return std::string{"odd"}; return n / 2; }
///     if (auto r = half(4)) use(*r); else report(r.error());
///
/// T and E are different types. `value()` without a value throws std::logic_error; to use `*`, `->` or `error()` on
/// what is not there is a programmer's error.
template <class T, class E>
class [[nodiscard]] Result {
    static_assert(!std::is_same_v<T, E>, "a Result's value and error must be told apart by their types");

  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & { return require(), **this; }
    const T& value() const& { return require(), **this; }
    T&& value() && { return require(), *std::move(*this); }
    const E& error() const { return assert(!has_value()), *std::get_if<1>(&state_); }

    T& operator*() & { return assert(has_value()), *std::get_if<0>(&state_); }
    const T& operator*() const& { return assert(has_value()), *std::get_if<0>(&state_); }
    T&& operator*() && { return assert(has_value()), std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return &**this; }
    const T* operator->() const { return &**this; }

  private:
    void require() const {
        if (!has_value()) throw std::logic_error("value() of a Result that holds an error; test it first");
    }

    std::variant<T, E> state_;
};

}  // namespace varve
