#pragma once

#include <cstdio>
#include <cstdlib>

/// Stops the fuzzer at an input for which what must hold does not.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}
