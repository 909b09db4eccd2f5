#pragma once

#include <varve/core/error.h>
#include <varve/store/item.h>

#include <cstdint>
#include <limits>
#include <string>

// Attributes of stored items, each of its type and within its range. What is there and is not so was never written by
// varve: CorruptionError names item and attribute. Nothing is guessed.

namespace varve::transactions {

/// An epoch has one after it.
constexpr std::int64_t epoch_max = std::numeric_limits<std::int64_t>::max() - 1;
/// The end of the year 9999, in microseconds of Unix time.
constexpr std::int64_t microseconds_max = 253'402'300'799'999'999;

[[noreturn]] inline void throw_damaged(const store::Key& key, const std::string& what) {
    throw CorruptionError("the item " + store::to_string(key) + " " + what +
                          "; it was written by a newer version of varve, by hand, or is damaged");
}

/// nullptr if it is missing.
inline const std::string* text_of(const store::Key& key, const store::Item& item, const char* attribute) {
    const auto found = item.find(attribute);
    if (found == item.end()) return nullptr;
    const auto* text = std::get_if<std::string>(&found->second);
    if (text == nullptr) throw_damaged(key, std::string{"has an attribute '"} + attribute + "' that is no text");
    return text;
}

struct Range {
    std::int64_t first;
    std::int64_t last;
};

/// nullptr if it is missing.
inline const std::int64_t* integer_of(const store::Key& key, const store::Item& item, const char* attribute,
                                      Range range) {
    const auto found = item.find(attribute);
    if (found == item.end()) return nullptr;
    const auto* number = std::get_if<std::int64_t>(&found->second);
    if (number == nullptr || *number < range.first || *number > range.last) {
        throw_damaged(key, std::string{"has an attribute '"} + attribute + "' that is no integer from " +
                               std::to_string(range.first) + " to " + std::to_string(range.last));
    }
    return number;
}

}  // namespace varve::transactions
