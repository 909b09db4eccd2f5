#include "telemetry/open_span.h"

#include <utility>

namespace varve::telemetry {
namespace {

thread_local const OpenSpan* current_span = nullptr;

template <std::size_t size>
void draw(std::array<std::uint8_t, size>& bytes, Random& random) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < size; ++i, bits >>= 8) {
        if (i % 8 == 0) bits = random.next();
        bytes[i] = static_cast<std::uint8_t>(bits);
    }
    bytes.back() |= 1;  // all zeros would be none
}

}  // namespace

OpenSpan::OpenSpan(Tracer& tracer, Runtime runtime, std::optional<TraceContext> parent, std::string name,
                   Span::Kind kind)
    : tracer_(tracer),
      runtime_(runtime),
      span_{.name = std::move(name), .kind = kind, .began = runtime.clock.get().now()},
      began_(runtime.clock.get().steady_now()) {
    span_.context.sampled = true;
    draw(span_.context.span_id, runtime.random);
    if (parent) {
        span_.context.trace_id = parent->trace_id;
        span_.parent = parent->span_id;
    } else {
        draw(span_.context.trace_id, runtime.random);
    }
}

void OpenSpan::end() noexcept {
    span_.took = runtime_.clock.get().steady_now() - began_;
    tracer_.record(std::move(span_));
}

SpanScope::SpanScope(const OpenSpan* span) noexcept : before_(std::exchange(current_span, span)) {}

SpanScope::~SpanScope() {
    current_span = before_;
}

const OpenSpan* SpanScope::current() noexcept {
    return current_span;
}

}  // namespace varve::telemetry
