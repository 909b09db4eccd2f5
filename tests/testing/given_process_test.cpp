#include "support/checkout.h"
#include "support/lending.h"
#include "testing/failure_of.h"

#include <varve/testing/given.h>

#include <string>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace checkout;

TEST(GivenProcess, expectations_that_hold_pass) {
    given<Checkout>()
        .when(Placed{"p-1", 3}, "o-17")
        .then_commands(command<Stock>("p-1", Reserve{3}))
        .then_effects(AskPayment{"o-17"})
        .then(Started{"p-1"})
        .then_state([](const Checkout& checkout) { return checkout.started == 1; });
    given<Checkout>()
        .rejecting<Stock>("p-1", reject("out_of_stock"))
        .when(Placed{"p-1", 3}, "o-17")
        .then_commands(command<Stock>("p-1", Reserve{3}), command<Purchase>("o-17", Cancel{"out_of_stock"}))
        .then_effects()
        .then(GivenUp{"out_of_stock"});
    given<Checkout>(Started{"p-1"}).when(Paid{"o-17"}).then(Done{}).then_commands();
}

TEST(GivenProcess, one_that_does_not_hold_says_what_differs) {
    const auto reacted = given<Checkout>().when(Placed{"p-1", 3}, "o-17");
    EXPECT_EQ(failure_of([&] { reacted.then_commands(command<Stock>("p-1", Reserve{4})); }),
              std::string{__FILE__} + ":" + std::to_string(__LINE__ - 2) +
                  ": Placed led to other commands (- expected, + actual)\n"
                  "      [\n"
                  "        {\n"
                  "          \"Reserve on stock-p-1\": {\n"
                  "    -       \"quantity\": 4\n"
                  "    +       \"quantity\": 3\n"
                  "          }\n"
                  "        }\n"
                  "      ]\n"
                  "  $[0].Reserve on stock-p-1.quantity: expected 4, actual 3");
    EXPECT_NE(failure_of([&] { reacted.then_nothing(); }).find("Placed led to other commands"), std::string::npos);
    EXPECT_NE(failure_of([&] { reacted.then(Done{}); }).find("Placed led to other events"), std::string::npos);
    EXPECT_NE(failure_of([&] { reacted.then_effects(); }).find("Placed led to other effects"), std::string::npos);
    EXPECT_NE(failure_of([&] {
                  reacted.then_state([](const Checkout& c) { return c.is_done; });
              }).find("the checkout's state does not hold"),
              std::string::npos);
}

TEST(GivenProcess, a_rejection_that_nobody_looks_at_fails_as_it_would_in_the_application) {
    const std::string failure = failure_of([] {
        static_cast<void>(
            given<Checkout>().rejecting<Purchase>("o-17", reject("not_open", "it is shut")).when(Failed{"o-17"}));
    });
    EXPECT_NE(
        failure.find("Failed led to the command Cancel on purchase-o-17, which was rejected with \"not_open\" (it "
                     "is shut), and nobody looked at that"),
        std::string::npos)
        << failure;
}

/// Asks what time it is, and for whom it reacts.
struct Watch {
    static constexpr std::string_view name = "watch";
    using Event = std::variant<Started, Done>;
    using ListensTo = EventsOf<Payment>;
    void apply(const Started&) {}
    void apply(const Done&) {}
    static std::optional<std::string> on(const Paid&, const EventContext&) { return "w"; }
    void react(const Paid&, Reaction& r) const {
        r.record(Started{to_text(r.now()) + " " + std::string{r.input().aggregate_id()}});
    }
    static std::string to_text(Time time) { return json::encode(time); }
    static std::optional<std::string> on(const Failed&, const EventContext&) { return "w"; }
    void react(const Failed&, Reaction& r) const { r.record(GivenUp{}); }
};

TEST(GivenProcess, the_time_and_the_aggregate_are_what_the_test_says) {
    given<Watch>()
        .at(Time{std::chrono::seconds{1}})
        .when(Paid{}, "x")
        .then(Started{"\"1970-01-01T00:00:01.000000Z\" x"});
}

TEST(GivenProcess, timers_are_set_come_back_and_are_cancelled) {
    using namespace lending;
    using std::chrono::hours;
    Reminder::is_broken = false;
    const Time now{hours{1}};
    given<Reminder>()
        .at(now)
        .when(Lent{3600})
        .then_timer_at(now + hours{1}, Overdue{1})
        .then(Set{"timer-1"})
        .then_cancelled();
    given<Reminder>(Set{"timer-1"})
        .at(now)
        .when(Overdue{1}, "b")
        .then_effects(Letter{1})
        .then_timers(timer_at(now + hours{1}, Overdue{2}))
        .then(Reminded{1, now}, Set{"timer-1"});
    given<Reminder>().when(Overdue{3}).then_no_timer();
    given<Reminder>(Set{"timer-1"}).when(Returned{}).then_cancelled("timer-1").then(Ended{true});
    given<Reminder>(Set{"timer-1"}).timers_gone().when(Returned{}).then_cancelled("timer-1").then(Ended{false});
    const auto reacted = given<Reminder>().at(now).when(Lent{3600});
    const std::string failure = failure_of([&] { reacted.then_timer_at(now, Overdue{1}); });
    EXPECT_NE(failure.find("Lent led to other timers"), std::string::npos) << failure;
    EXPECT_NE(failure_of([&] { reacted.then_cancelled("x"); }).find("Lent cancelled other timers"), std::string::npos);
    EXPECT_THROW(reacted.then_no_timer(), AssertionFailed);
    EXPECT_THROW(reacted.then_nothing(), AssertionFailed);
}

TEST(GivenProcess, an_event_that_is_none_of_the_processes_is_named) {
    EXPECT_NE(failure_of([] {
                  static_cast<void>(given<Watch>().when(Failed{}));
              }).find("GivenUp, which is no event of the process; add it to its Event variant"),
              std::string::npos);
}

}  // namespace
}  // namespace varve::testing
