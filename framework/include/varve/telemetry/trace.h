#pragma once

#include <varve/core/clock.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace varve::telemetry {

using SpanId = std::array<std::uint8_t, 8>;

/// A span's place: its trace and its own id, as W3C Trace Context writes them in the header "traceparent"
/// (https://www.w3.org/TR/trace-context/). A value.
///
///     if (const auto context = TraceContext::parse(request.header("traceparent"))) log(to_hex(context->trace_id));
struct TraceContext {
    std::array<std::uint8_t, 16> trace_id{};
    SpanId span_id{};
    bool sampled = false;

    /// Nullopt: it is none, or has ids of zeros. Of a later version it reads what this one has.
    static std::optional<TraceContext> parse(std::string_view traceparent);
    std::string traceparent() const;
};
/// In lower-case hexadecimal.
std::string to_hex(const SpanId& id);
std::string to_hex(const std::array<std::uint8_t, 16>& trace_id);

/// Something that took its time, as part of a trace. A value.
struct Span {
    enum class Kind { internal, client };

    TraceContext context = {};
    SpanId parent{};  ///< zeros: the trace begins with it
    std::string name = {};
    Kind kind = Kind::internal;
    Time began = {};
    Duration took = {};
    std::vector<std::pair<std::string, std::variant<std::string, std::int64_t>>> attributes = {};
    std::string error = {};  ///< empty: none
};

/// Takes spans (ApplicationOptions::tracer). A command's span belongs to the trace that its header "traceparent" names
/// (CommandOptions::headers) and is recorded if that is sampled; one without the header asks `samples`. The events that
/// it decides carry the span on in that header. Requests to the store are spans within it.
///
/// Threads: all methods are called from any thread.
class Tracer {
  public:
    virtual ~Tracer() = default;
    /// Whether a trace that begins here is recorded.
    virtual bool samples() noexcept = 0;
    /// Must neither wait nor throw.
    virtual void record(Span span) noexcept = 0;
};

}  // namespace varve::telemetry
