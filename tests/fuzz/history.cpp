#include "../checkers/history_json.h"
#include "require.h"

#include <cstdint>
#include <string_view>

// Whatever a recorded history holds, it is judged or refused with a BadHistory.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    try {
        for (const auto& history : varve::checkers::parse_histories(text)) {
            for (const auto& finding : varve::checkers::check(history)) {
                require(!finding.explanation.empty(), "a finding is explained");
            }
        }
    } catch (const varve::checkers::BadHistory& error) {
        require(!std::string_view{error.what()}.empty(), "a refusal says why");
    }
    return 0;
}
