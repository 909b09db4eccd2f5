#include "events.h"

#include "output.h"
#include "reports.h"

namespace varve::console {

void print_event(const Console& console, const RecordedEvent& e) {
    if (console.json) {
        print_json(report_of(e));
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
