#include <varve/transactions/outcome.h>

namespace varve::transactions {

const char* to_string(Path path) noexcept {
    switch (path) {
        case Path::nothing: return "nothing";
        case Path::single: return "single";
        case Path::native: return "native";
        case Path::protocol: return "protocol";
        case Path::reserved: return "reserved";
    }
    return "unknown";
}

}  // namespace varve::transactions
