#pragma once

#include <varve/telemetry/instruments.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace varve::telemetry {

/// One value, and what it is of: {{"aggregate", "account"}, {"outcome", "committed"}}.
struct Sample {
    std::vector<std::pair<std::string, std::string>> labels = {};
    std::variant<double, HistogramValue> value = 0.0;
};

/// A metric with all its samples, in the terms of Prometheus; a value. Names have their unit: seconds, bytes, a total.
///
///     Metric{"jobs_total", "Jobs done, by kind.", Metric::Kind::counter, {{{{"kind", "mail"}}, 7.0}}}
struct Metric {
    enum class Kind { counter, gauge, histogram };

    std::string name;
    std::string help;
    Kind kind = Kind::counter;
    std::vector<Sample> samples = {};
};

}  // namespace varve::telemetry
