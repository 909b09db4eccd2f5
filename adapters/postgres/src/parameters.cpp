#include "parameters.h"

#include <utility>

namespace varve::postgres {
namespace {

void append(std::string& bytes, std::uint64_t number, int width) {
    for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
}

int width_of(Array::Type type) {
    switch (type) {
        case Array::Type::boolean: return 1;
        case Array::Type::smallint: return 2;
        case Array::Type::integer: return 4;
        default: return 8;
    }
}

}  // namespace

void Array::begin(std::int32_t size) {
    ++count_;
    append(elements_, static_cast<std::uint32_t>(size), 4);
}

void Array::add(std::int64_t number) {
    const int width = width_of(type_);
    begin(width);
    append(elements_, static_cast<std::uint64_t>(number), width);
}

void Array::add(std::string_view text) {
    begin(static_cast<std::int32_t>(text.size()));
    elements_ += text;
}

void Array::add_null() {
    begin(-1);
    has_null_ = true;
}

std::string Array::take() && {
    std::string bytes;
    bytes.reserve(20 + elements_.size());
    append(bytes, count_ > 0 ? 1 : 0, 4);  // dimensions
    append(bytes, has_null_ ? 1 : 0, 4);
    append(bytes, static_cast<std::uint32_t>(type_), 4);
    if (count_ > 0) {
        append(bytes, static_cast<std::uint32_t>(count_), 4);
        append(bytes, 1, 4);  // the first index
    }
    bytes += std::exchange(elements_, {});
    return bytes;
}

}  // namespace varve::postgres
