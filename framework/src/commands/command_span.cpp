#include "commands/command_span.h"

#include "commands/command.h"
#include "commands/failures.h"

#include <exception>
#include <string>
#include <utility>

namespace varve::detail {

using telemetry::OpenSpan;
using telemetry::TraceContext;

std::optional<OpenSpan> begin_span(telemetry::Tracer* tracer, Runtime runtime, const CommandOptions& options,
                                   std::string_view verb, std::string_view aggregate) noexcept try {
    if (tracer == nullptr) return std::nullopt;
    const auto header = options.headers.find("traceparent");
    const std::optional<TraceContext> parent =
        header == options.headers.end() ? std::nullopt : TraceContext::parse(header->second);
    if (!(parent ? parent->sampled : tracer->samples())) return std::nullopt;
    std::string name{verb};
    if (!aggregate.empty()) (name += ' ') += aggregate;
    OpenSpan span{*tracer, runtime, parent, std::move(name), telemetry::Span::Kind::internal};
    if (!options.command_id.empty()) span.add("varve.command_id", options.command_id);
    if (!options.correlation.empty()) span.add("varve.correlation_id", options.correlation);
    return span;
} catch (const std::exception&) {
    return std::nullopt;
}

void end_span(Command& command) noexcept {
    OpenSpan& span = *command.span;
    try {
        if (command.failure) {
            try {
                std::rethrow_exception(command.failure);
            } catch (...) {
                span.fail(storable_cause());
            }
        } else if (const Outcome& outcome = *command.outcome; !outcome) {
            span.add("varve.rejection", outcome.error().code);
        } else {
            span.add("varve.transaction", outcome->transaction);
            span.add("varve.attempts", static_cast<std::int64_t>(outcome->attempts));
            span.add("varve.rung", std::string{to_string(outcome->rung)});
            span.add("varve.path", std::string{to_string(outcome->path)});
            if (outcome->repeated) span.add("varve.repeated", std::int64_t{1});
        }
    } catch (const std::exception&) {
        // Then it says less.
    }
    span.end();
}

}  // namespace varve::detail
