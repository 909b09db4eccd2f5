#include <varve/prometheus/prometheus.h>

#include <limits>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace varve::prometheus {
namespace {

using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;

MetricType type_of(telemetry::Metric::Kind kind) {
    switch (kind) {
        case telemetry::Metric::Kind::counter: return MetricType::Counter;
        case telemetry::Metric::Kind::gauge: return MetricType::Gauge;
        case telemetry::Metric::Kind::histogram: return MetricType::Histogram;
    }
    return MetricType::Untyped;
}

ClientMetric::Histogram cumulated(const telemetry::HistogramValue& value) {
    ClientMetric::Histogram histogram;
    std::uint64_t count = 0;
    for (const telemetry::HistogramValue::Bucket& bucket : value.buckets)
        histogram.bucket.push_back({count += bucket.count, bucket.upper_bound});
    histogram.bucket.push_back({count += value.beyond, std::numeric_limits<double>::infinity()});
    histogram.sample_count = count;
    histogram.sample_sum = value.sum;
    return histogram;
}

/// The library leaves it as it is.
std::string on_one_line(const std::string& help) {
    std::string line;
    for (const char c : help) line += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
    return line;
}

}  // namespace

std::string text(std::span<const telemetry::Metric> metrics) {
    std::vector<MetricFamily> families;
    for (const telemetry::Metric& metric : metrics) {
        MetricFamily family{metric.name, on_one_line(metric.help), type_of(metric.kind), {}};
        for (const telemetry::Sample& sample : metric.samples) {
            ClientMetric& one = family.metric.emplace_back();
            for (const auto& [name, value] : sample.labels) one.label.push_back({name, value});
            if (const auto* histogram = std::get_if<telemetry::HistogramValue>(&sample.value)) {
                one.histogram = cumulated(*histogram);
            } else {
                one.counter.value = one.gauge.value = std::get<double>(sample.value);
            }
        }
        families.push_back(std::move(family));
    }
    return ::prometheus::TextSerializer{}.Serialize(families);
}

}  // namespace varve::prometheus
