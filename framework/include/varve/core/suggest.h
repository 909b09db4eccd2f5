#pragma once

#include <span>
#include <string>
#include <string_view>

namespace varve {

/// The tail of an error message about an unknown word: " (did you mean 'sqlite'? known: memory, sqlite)".
/// Suggests the known word with the smallest edit distance if that is at most a third of the word, rounded up.
std::string suggest(std::string_view word, std::span<const std::string> known);

}  // namespace varve
