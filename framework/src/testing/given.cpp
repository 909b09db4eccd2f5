#include "testing/expectations.h"

namespace varve::testing::detail {
void expect_events(const Decided& decided, const std::vector<EventData>& expected) {
    if (decided.rejection) {
        fail(decided.place, decided.command + " was " + described(*decided.rejection) + "; expected was " +
                                (expected.empty() ? "that nothing happens" : "that it is accepted: " + list(expected)));
    }
    expect_same(decided.place, decided.command + " led to other events", expected, decided.events);
}

void expect_effects(const Decided& decided, const std::vector<EventData>& expected) {
    expect_same(decided.place, decided.command + " led to other effects", expected, decided.effects);
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
