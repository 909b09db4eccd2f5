#pragma once

#include "commands/command_metrics.h"
#include "telemetry/open_span.h"

#include <varve/commands/options.h>
#include <varve/commands/outcome.h>
#include <varve/core/clock.h>

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace varve {
class Transaction;
}

namespace varve::detail {

/// One command on its way, and how it ended.
struct Command {
    const std::function<void(Transaction&)>& body;
    const CommandOptions& options;
    CommandMetrics::OfAggregate& metrics;
    Time began;
    std::string fingerprint = {};                  ///< of what its id stands for
    std::optional<telemetry::OpenSpan> span = {};  ///< if it is traced
    bool in_lane = false;                          ///< of those on its aggregate one goes at a time as it is
    std::optional<Outcome> outcome = {};           ///< one of the two, as soon as it has ended
    std::exception_ptr failure = {};
};

/// Those that go together: they are decided one after the other and committed as one.
using Commands = std::span<Command* const>;

}  // namespace varve::detail
