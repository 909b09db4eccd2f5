#pragma once

#include "isolation/cases.h"

#include <optional>
#include <string>

namespace varve::isolation {

const char* to_string(Level level);

/// Whether a case may happen; nullopt: it means nothing there.
std::optional<bool> may_happen(const std::string& name, Subject subject, Way way, Level level);

/// docs/isolation-table.md.
std::string render_table();

}  // namespace varve::isolation
