#include "require.h"

#include <varve/core/error.h>

#include <cstdint>
#include <string_view>

#include <answers.h>

// Whatever a server answers, it is understood or refused as corrupt, by every reader of answers.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace varve::dynamodb;
    const std::string_view body{reinterpret_cast<const char*>(data), size};
    static const Table events{"p.events",
                              {.name = "events",
                               .partition_attribute = "aggregateId",
                               .sort_attribute = "version",
                               .sort = varve::store::SortType::integer}};
    const FindTable find = [](std::string_view name) { return name == events.name ? &events : nullptr; };
    const auto reads = {
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_get_item(text, events)); },
        +[](std::string_view text, const FindTable& known) { static_cast<void>(parse_batch_get_item(text, known)); },
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_page(text, events)); },
        +[](std::string_view text, const FindTable&) { check_applied(text); },
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_error(text)); },
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_refusing_item(text, events)); },
        +[](std::string_view text, const FindTable&) {
            static_cast<void>(parse_cancellation(text, {&events, &events}));
        },
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_described_table(text)); },
        +[](std::string_view text, const FindTable&) { static_cast<void>(parse_time_to_live(text)); },
    };
    for (const auto read : reads) {
        try {
            read(body, find);
        } catch (const varve::CorruptionError& error) {
            require(!std::string_view{error.what()}.empty(), "a refusal says why");
        }
    }
    return 0;
}
