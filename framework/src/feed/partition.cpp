#include "feed/partition.h"

#include <varve/core/fnv1a.h>

namespace varve::feed {

std::int64_t Partition::number_for(std::string_view stream, std::int64_t of) {
    return static_cast<std::int64_t>(fnv1a(stream) % static_cast<std::uint64_t>(of)) + 1;
}

}  // namespace varve::feed
