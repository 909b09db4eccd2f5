#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::postgres {

/// An array of the server's, in the form in which the protocol sends it as binary: each element with its length.
class Array {
  public:
    enum class Type : std::uint32_t { boolean = 16, bigint = 20, smallint = 21, integer = 23, text = 25 };

    explicit Array(Type type) : type_(type) {}

    void add(std::int64_t number);  ///< cut to the width of the type
    void add(std::string_view text);
    void add_null();

    /// Its bytes; it is used up.
    std::string take() &&;

  private:
    void begin(std::int32_t size);

    const Type type_;
    std::int32_t count_ = 0;
    bool has_null_ = false;
    std::string elements_;
};

/// What a statement is run with: its $1, $2 …
class Parameters {
  public:
    Parameters& add(std::string text) { return add(std::move(text), 0); }
    Parameters& add(std::int64_t number) { return add(std::to_string(number), 0); }
    Parameters& add(Array array) { return add(std::move(array).take(), 1); }

    std::size_t size() const { return values_.size(); }
    const std::vector<std::string>& values() const { return values_; }
    const std::vector<int>& formats() const { return formats_; }

  private:
    Parameters& add(std::string bytes, int format) {
        values_.push_back(std::move(bytes));
        formats_.push_back(format);
        return *this;
    }

    std::vector<std::string> values_;
    std::vector<int> formats_;  // 0: text, 1: binary
};

}  // namespace varve::postgres
