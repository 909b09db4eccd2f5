#include "testing/describe.h"

namespace varve::testing::detail {

std::string describe(const store::Write& write) {
    static constexpr const char* actions[] = {"put ", "update ", "erase ", "check "};
    static_assert(std::variant_size_v<decltype(write.action)> == std::size(actions));
    return actions[write.action.index()] + to_string(write.key);
}

}  // namespace varve::testing::detail
