#include "require.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

// Whatever a text holds, it is read or refused; what was read, written and read again is the same text.

namespace {

enum class Colour { red, green };

struct Leaf {
    std::int64_t whole = 0;
    std::optional<double> real;
    std::string text;
};
struct Moved {
    std::uint8_t x = 0;
    std::int16_t y = 0;
};
struct Named {
    std::string name;
};
struct Tree {
    bool flag = false;
    Colour colour = Colour::red;
    std::uint64_t large = 0;
    varve::Time time;
    std::chrono::milliseconds span{};
    std::vector<Leaf> leaves;
    std::array<float, 2> pair{};
    std::map<std::string, Leaf> by_name;
    std::map<std::int32_t, std::vector<std::string>> by_number;
    std::variant<Moved, Named> either;
    varve::json::Raw raw;
    std::vector<Tree> below;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    const auto tree = varve::json::decode<Tree>(text);
    if (!tree) {
        require(!tree.error().message.empty(), "a refusal says why");
        return 0;
    }
    const std::string written = varve::json::encode(*tree);
    const auto again = varve::json::decode<Tree>(written);
    require(again.has_value(), "what was written can be read");
    require(varve::json::encode(*again) == written, "what was written is read as the same");
    return 0;
}
