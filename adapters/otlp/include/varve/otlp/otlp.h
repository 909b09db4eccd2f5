#pragma once

#include <varve/core/clock.h>
#include <varve/core/runtime.h>
#include <varve/telemetry/trace.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace varve::otlp {

struct Options {
    /// Where a collector takes traces as JSON: POST, OTLP/HTTP.
    std::string url = "http://127.0.0.1:4318/v1/traces";
    std::string service_name = "varve";  ///< what these spans are of: the program
    /// Which part of the traces that begin here is recorded, 0 to 1. Those that come with a "traceparent" are recorded
    /// as that says.
    double sampled = 1;
    /// Sent with each request, as {"Authorization", "Bearer …"}; never in a log or an error.
    std::map<std::string, std::string> headers = {};
    std::size_t queue_max = 10'000;  ///< spans that wait; what comes beyond is dropped and counted. At least 1
    std::size_t batch_max = 500;     ///< spans in one request; at least 1
    Duration interval = std::chrono::seconds{1};  ///< how often what waits is sent; more than 0
    Duration timeout = std::chrono::seconds{5};   ///< of one request; more than 0, at most a minute
    Runtime runtime = {};
};

/// Sends spans to a collector, from a thread of its own. A collector that is away costs spans, and nothing else; the
/// log is told when it goes away, and when it is back.
///
///     auto exporter = std::make_shared<varve::otlp::Exporter>(varve::otlp::Options{.service_name = "bank"});
///     varve::Application bank{store, {.tracer = exporter}};
///
/// Threads: any. The destructor sends what still waits; where nobody answers, that takes `timeout`.
class Exporter final : public telemetry::Tracer {
  public:
    /// ConfigError for options that cannot work; it names the option, and never shows a header.
    explicit Exporter(Options options);
    ~Exporter() override;
    Exporter(const Exporter&) = delete;
    Exporter& operator=(const Exporter&) = delete;

    bool samples() noexcept override;
    void record(telemetry::Span span) noexcept override;

    /// Sends all that waits. False: some of it did not arrive, and is dropped.
    bool flush();
    std::uint64_t sent() const;
    std::uint64_t dropped() const;

  private:
    class Sender;
    const std::unique_ptr<Sender> sender_;
};

}  // namespace varve::otlp
