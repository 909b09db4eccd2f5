#include "testing/json_diff.h"

#include <varve/testing/given.h>

namespace varve::testing::detail {
namespace {

[[noreturn]] void fail(const Place& place, const std::string& message) {
    throw AssertionFailed(std::string{place.file} + ":" + std::to_string(place.line) + ": " + message);
}

/// [{"Withdrawn":{…}}, …]: what is compared, and shown.
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

}  // namespace

void expect_events(const Decided& decided, const std::vector<EventData>& expected) {
    if (decided.rejection) {
        fail(decided.place, decided.command + " was " + described(*decided.rejection) + "; expected was " +
                                (expected.empty() ? "that nothing happens" : "that it is accepted: " + list(expected)));
    }
    const JsonDiff diff = diff_json(list(expected), list(decided.events));
    if (!diff.fields.empty()) fail(decided.place, decided.command + " led to other events" + shown(diff));
}

void expect_effects(const Decided& decided, const std::vector<EventData>& expected) {
    const JsonDiff diff = diff_json(list(expected), list(decided.effects));
    if (!diff.fields.empty()) fail(decided.place, decided.command + " led to other effects" + shown(diff));
}

void expect_rejection(const Decided& decided, std::string_view code) {
    if (decided.rejection && decided.rejection->code == code) return;
    const std::string expected = "expected was that it is rejected with \"" + std::string{code} + "\"";
    if (decided.rejection) {
        fail(decided.place, decided.command + " was " + described(*decided.rejection) + "; " + expected);
    }
    fail(decided.place, decided.command + " was accepted, and led to " +
                            (decided.events.empty() ? "no event" : list(decided.events)) + "; " + expected);
}

void expect_message(const Decided& decided, std::string_view message) {
    if (decided.rejection->message == message) return;
    fail(decided.place, decided.command + " was " + described(*decided.rejection) + "; expected was the message \"" +
                            std::string{message} + "\"");
}

void expect_state(const Place& place, std::string_view aggregate, const std::string& expected,
                  const std::string& actual) {
    const JsonDiff diff = diff_json(expected, actual);
    if (!diff.fields.empty()) fail(place, "the " + std::string{aggregate} + " is in another state" + shown(diff));
}

void fail_state(const Place& place, std::string_view aggregate) {
    fail(place, "what was expected of the " + std::string{aggregate} + "'s state does not hold");
}

}  // namespace varve::testing::detail
