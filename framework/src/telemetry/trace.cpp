#include <varve/telemetry/trace.h>

#include <span>

namespace varve::telemetry {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

std::string hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) text += {digits[byte >> 4], digits[byte & 15]};
    return text;
}

/// False: these are not as many lower-case digits.
bool read(std::string_view text, std::span<std::uint8_t> bytes) {
    if (text.size() != 2 * bytes.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t digit = digits.find(text[i]);
        if (digit == std::string_view::npos) return false;
        bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | digit);
    }
    return true;
}

}  // namespace

std::optional<TraceContext> TraceContext::parse(std::string_view text) {
    // version "-" trace-id "-" parent-id "-" flags, and in later versions more after another "-"
    constexpr std::size_t size = 55;
    std::array<std::uint8_t, 1> version{};
    std::array<std::uint8_t, 1> flags{};
    TraceContext context;
    if (text.size() < size || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
    if (!read(text.substr(0, 2), version) || !read(text.substr(3, 32), context.trace_id) ||
        !read(text.substr(36, 16), context.span_id) || !read(text.substr(53, 2), flags))
        return std::nullopt;
    if (version[0] == 0xff || (version[0] == 0 && text.size() != size) || (text.size() > size && text[size] != '-'))
        return std::nullopt;
    if (context.trace_id == decltype(context.trace_id){} || context.span_id == SpanId{}) return std::nullopt;
    context.sampled = (flags[0] & 1) != 0;
    return context;
}

std::string TraceContext::traceparent() const {
    return "00-" + hex(trace_id) + "-" + hex(span_id) + (sampled ? "-01" : "-00");
}

std::string to_hex(const SpanId& id) {
    return hex(id);
}

std::string to_hex(const std::array<std::uint8_t, 16>& trace_id) {
    return hex(trace_id);
}

}  // namespace varve::telemetry
