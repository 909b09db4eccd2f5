#include "testing/expectations.h"

namespace varve::testing::detail {

void fail(const Place& place, const std::string& message) {
    throw AssertionFailed(std::string{place.file} + ":" + std::to_string(place.line) + ": " + message);
}

std::string list(const std::vector<EventData>& events) {
    std::string text = "[";
    for (const EventData& event : events) {
        if (text.size() > 1) text += ',';
        text += '{' + json::quote(event.type) + ':' + event.data + '}';
    }
    return text + ']';
}

std::string shown(const JsonDiff& diff) {
    std::string text = " (- expected, + actual)";
    for (const std::string& line : diff.lines) text += "\n    " + line;
    for (const std::string& field : diff.fields) text += "\n  " + field;
    return text;
}

std::string described(const Rejection& rejection) {
    return "rejected with \"" + rejection.code + "\"" +
           (rejection.message.empty() ? "" : " (" + rejection.message + ")");
}

void expect_same(const Place& place, const std::string& message, const std::vector<EventData>& expected,
                 const std::vector<EventData>& actual) {
    const JsonDiff diff = diff_json(list(expected), list(actual));
    if (!diff.fields.empty()) fail(place, message + shown(diff));
}

}  // namespace varve::testing::detail
