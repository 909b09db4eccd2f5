#pragma once

#include <varve/telemetry/trace.h>

#include <span>
#include <string>
#include <string_view>

namespace varve::otlp {

/// The body of a request: an ExportTraceServiceRequest in protobuf's JSON form, with ids in hexadecimal
/// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
std::string encode(std::string_view service_name, std::span<const telemetry::Span> spans);

}  // namespace varve::otlp
