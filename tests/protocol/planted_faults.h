#pragma once

#include "core/planted_faults.h"

#include <optional>
#include <string_view>
#include <vector>

namespace varve::protocol {

/// From now on the protocol's copy in this program has this fault; none: it is sound.
void plant(std::optional<PlantedFault> fault);

/// In words: "undo without fencing".
std::string_view name_of(PlantedFault fault);

/// Every one, in the order of the enumeration.
std::vector<PlantedFault> all_planted_faults();

}  // namespace varve::protocol
