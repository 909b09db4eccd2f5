#pragma once

#include "commands/consumer.h"

#include <varve/processes/process.h>

namespace varve::detail {

/// What reacts for this process. It follows under process_name().
Consumer consumer_of(ProcessType process, const ProcessOptions& options);

}  // namespace varve::detail
