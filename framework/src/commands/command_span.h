#pragma once

#include "telemetry/open_span.h"

#include <optional>
#include <string_view>

namespace varve {
struct CommandOptions;
}

namespace varve::detail {

struct Command;

/// Of a command with these options, named as in "execute account". Nullopt if it is not traced: there is no tracer, the
/// trace that it belongs to is not sampled, or there is no memory for it.
std::optional<telemetry::OpenSpan> begin_span(telemetry::Tracer* tracer, Runtime runtime, const CommandOptions& options,
                                              std::string_view verb, std::string_view aggregate = {}) noexcept;
/// The command has ended. Says how.
void end_span(Command& command) noexcept;

}  // namespace varve::detail
