#include <varve/commands/outcome.h>

namespace varve {

const char* to_string(Rung rung) noexcept {
    switch (rung) {
        case Rung::at_once: return "at_once";
        case Rung::retried: return "retried";
        case Rung::waited: return "waited";
        case Rung::queued: return "queued";
        case Rung::reserved: return "reserved";
    }
    return "unknown";
}

}  // namespace varve
