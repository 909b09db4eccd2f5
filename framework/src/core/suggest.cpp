#include <varve/core/suggest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace varve {
namespace {

/// Levenshtein's distance, one row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string suggest(std::string_view word, std::span<const std::string> known) {
    if (known.empty()) return " (none are known)";
    const auto nearest =
        std::ranges::min_element(known, {}, [&](const std::string& candidate) { return distance(word, candidate); });
    std::string tail = " (";
    if (distance(word, *nearest) <= (word.size() + 2) / 3) tail += "did you mean '" + *nearest + "'? ";
    tail += "known: ";
    for (const std::string& candidate : known) tail += candidate + (&candidate == &known.back() ? ")" : ", ");
    return tail;
}

}  // namespace varve
