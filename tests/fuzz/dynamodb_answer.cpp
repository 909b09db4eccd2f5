#include "require.h"

#include <varve/core/error.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <string_view>

#include <answers.h>
#include <item_json.h>

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
    using Answer = const rapidjson::Value&;
    const auto reads = {
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_get_item(answer, events)); },
        +[](Answer answer, const FindTable& known) { static_cast<void>(parse_batch_get_item(answer, known)); },
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_page(answer, events)); },
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_error(answer)); },
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_refusing_item(answer, events)); },
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_described_table(answer)); },
        +[](Answer answer, const FindTable&) { static_cast<void>(parse_time_to_live(answer)); },
    };
    for (const auto read : reads) {
        try {
            read(parse_object(body, "the answer"), find);
        } catch (const varve::CorruptionError& error) {
            require(!std::string_view{error.what()}.empty(), "a refusal says why");
        }
    }
    return 0;
}
