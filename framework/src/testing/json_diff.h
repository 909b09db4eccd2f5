#pragma once

#include <string>
#include <vector>

namespace varve::testing::detail {

/// Two JSON texts as a person compares them.
struct JsonDiff {
    std::vector<std::string> lines;   ///< both, pretty-printed: "  " in both, "- " expected only, "+ " actual only
    std::vector<std::string> fields;  ///< "$.transfer.legs: expected 2, actual 3"; empty: they are equal
};

/// Members are compared by name, whatever their order; numbers as they are spelled. Throws InvalidError for text that
/// is not JSON.
JsonDiff diff_json(const std::string& expected, const std::string& actual);

}  // namespace varve::testing::detail
