#include "events.h"

#include "output.h"

namespace varve::console {

namespace {

struct EventReport {
    std::string stream;
    Version version = 0;
    std::size_t index = 0;
    std::string id;
    Time time = {};
    std::string type;
    int schema = 1;
    json::Raw data;
    Metadata metadata;
    std::optional<std::uint64_t> position = {};
};

}  // namespace

void print_event(const Console& console, const RecordedEvent& e) {
    if (console.json) {
        print_json(EventReport{.stream = e.stream,
                               .version = e.version,
                               .index = e.index,
                               .id = e.id,
                               .time = e.time,
                               .type = e.event.type,
                               .schema = e.event.schema,
                               .data = {e.event.data},
                               .metadata = *e.metadata,
                               .position = e.position == 0 ? std::nullopt : std::optional{e.position}});
        return;
    }
    const std::string place = e.stream + " " + std::to_string(e.version) + "." + std::to_string(e.index);
    print_line(shown(e.time) + "  " + shown(place) + "  " + shown(e.event.type) + " " + shown(e.event.data));
    const Metadata& metadata = *e.metadata;
    std::string more = "id " + e.id;
    if (e.event.schema != 1) more += "  schema " + std::to_string(e.event.schema);
    if (!metadata.command_id.empty()) more += "  command " + metadata.command_id;
    if (!metadata.correlation.empty()) more += "  correlation " + metadata.correlation;
    if (!metadata.causation.empty()) more += "  causation " + metadata.causation;
    for (const auto& [name, value] : metadata.headers) more += "  " + name + "=" + value;
    print_line("                     " + shown(more));
}

}  // namespace varve::console
