#pragma once

#include <varve/telemetry/metric.h>

#include <span>
#include <string>
#include <string_view>

namespace varve::prometheus {

/// What a server answers with, as its Content-Type.
inline constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in the text format that Prometheus scrapes (version 0.0.4):
///
///     std::string body = varve::prometheus::text(bank.telemetry());
///
/// Threads: any.
std::string text(std::span<const telemetry::Metric> metrics);

}  // namespace varve::prometheus
