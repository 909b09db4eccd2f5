#include "encoding.h"

#include <varve/core/json.h>

namespace varve::otlp {
namespace {

using telemetry::Span;

std::string nanoseconds(Time time) {
    return "\"" + std::to_string(std::chrono::nanoseconds{time.time_since_epoch()}.count()) + "\"";
}

std::string attribute(const std::string& name, const std::variant<std::string, std::int64_t>& value) {
    const auto* const text = std::get_if<std::string>(&value);
    // 64 bits are more than JSON's numbers are sure to hold.
    return R"({"key":)" + json::quote_lossy(name) + R"(,"value":{)" +
           (text != nullptr ? R"("stringValue":)" + json::quote_lossy(*text)
                            : R"("intValue":")" + std::to_string(std::get<std::int64_t>(value)) + "\"") +
           "}}";
}

std::string encode(const Span& span) {
    std::string text = R"({"traceId":")" + telemetry::to_hex(span.context.trace_id) + R"(","spanId":")" +
                       telemetry::to_hex(span.context.span_id) + "\"";
    if (span.parent != telemetry::SpanId{}) text += R"(,"parentSpanId":")" + telemetry::to_hex(span.parent) + "\"";
    text += R"(,"name":)" + json::quote_lossy(span.name);
    text += span.kind == Span::Kind::client ? R"(,"kind":3)" : R"(,"kind":1)";
    text += R"(,"startTimeUnixNano":)" + nanoseconds(span.began);
    text += R"(,"endTimeUnixNano":)" + nanoseconds(span.began + span.took);
    text += R"(,"attributes":[)";
    for (std::size_t i = 0; i < span.attributes.size(); ++i)
        text += (i > 0 ? "," : "") + attribute(span.attributes[i].first, span.attributes[i].second);
    text += "]";
    constexpr const char* failed = R"(,"status":{"code":2,"message":)";
    if (!span.error.empty()) text += failed + json::quote_lossy(span.error) + "}";
    return text + "}";
}

}  // namespace

std::string encode(std::string_view service_name, std::span<const Span> spans) {
    std::string text = R"({"resourceSpans":[{"resource":{"attributes":[)" +
                       attribute("service.name", std::string{service_name}) +
                       R"(]},"scopeSpans":[{"scope":{"name":"varve"},"spans":[)";
    for (std::size_t i = 0; i < spans.size(); ++i) text += (i > 0 ? "," : "") + encode(spans[i]);
    return text + "]}]}]}";
}

}  // namespace varve::otlp
