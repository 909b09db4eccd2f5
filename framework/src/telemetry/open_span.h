#pragma once

#include <varve/core/runtime.h>
#include <varve/telemetry/trace.h>

#include <optional>
#include <string>

namespace varve::telemetry {

/// A span that has begun. Ends once.
class OpenSpan {
  public:
    /// Within `parent`; nullopt: a trace begins with it.
    OpenSpan(Tracer& tracer, Runtime runtime, std::optional<TraceContext> parent, std::string name, Span::Kind kind);

    const TraceContext& context() const { return span_.context; }
    Tracer& tracer() const { return tracer_; }
    void add(std::string name, std::variant<std::string, std::int64_t> value) {
        span_.attributes.emplace_back(std::move(name), std::move(value));
    }
    void fail(std::string error) { span_.error = std::move(error); }
    void end() noexcept;

  private:
    Tracer& tracer_;
    Runtime runtime_;
    Span span_;
    SteadyTime began_;
};

/// What this thread does belongs to a span, as long as this object lives. They nest.
class SpanScope {
  public:
    /// nullptr: to none.
    explicit SpanScope(const OpenSpan* span) noexcept;
    ~SpanScope();
    SpanScope(const SpanScope&) = delete;
    SpanScope& operator=(const SpanScope&) = delete;

    /// That of this thread, or nullptr.
    static const OpenSpan* current() noexcept;

  private:
    const OpenSpan* const before_;
};

}  // namespace varve::telemetry
