#include "commands/caused_by.h"

namespace varve::detail {

Metadata caused_by(const Metadata& before, Metadata metadata) {
    if (!before.correlation.empty()) metadata.correlation = before.correlation;
    if (metadata.correlation.empty()) metadata.correlation = metadata.command_id;
    for (const char* name : {"traceparent", "tracestate"}) {
        if (const auto header = before.headers.find(name); header != before.headers.end())
            metadata.headers.insert(*header);
    }
    return metadata;
}

}  // namespace varve::detail
