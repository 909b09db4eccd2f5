#pragma once

#include "console.h"

#include <varve/events/event.h>

namespace varve::console {

/// An event with all that is stored beside it: two lines, or one as JSON.
void print_event(const Console& console, const RecordedEvent& event);

}  // namespace varve::console
