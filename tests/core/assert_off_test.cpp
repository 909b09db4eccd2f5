#undef VARVE_ASSERTIONS
#include "core/assert.h"

namespace varve {

bool goes_on_where_assertions_are_off() {
    int evaluated = 0;
    VARVE_ASSERT(++evaluated > 1, "nobody looks");
    return evaluated == 0;
}

}  // namespace varve
