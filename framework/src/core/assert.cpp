#include "core/assert.h"

#include <cstdio>
#include <cstdlib>

namespace varve::detail {

void assertion_failed(const char* file, int line, const char* sentence) {
    std::fprintf(stderr, "%s:%d: it does not hold that %s\n", file, line, sentence);
    std::abort();
}

}  // namespace varve::detail
