#include "support/account.h"
#include "testing/failure_of.h"

#include <varve/testing/given.h>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace account;

::testing::AssertionResult has(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "no \"" << part << "\" in:\n" << text;
}

TEST(Given, expectations_that_hold_pass) {
    EXPECT_NO_THROW({
        given<Account>(Deposited{50}).when(Withdraw{80}).then_rejected("insufficient_funds");
        given<Account>(Deposited{50}).when(Withdraw{20}).then(Withdrawn{20});
        given<Account>().when(Open{"Alice"}).then(Opened{"Alice"}).then_state([](const Account& account) {
            return account.owner == "Alice";
        });
        given<Account>(Deposited{50}, Withdrawn{20}).then_state({.owner = "", .balance = 30});
    });
    EXPECT_EQ(given<Account>(Deposited{50}).when(Deposit{7}).state().balance, 57);
}

struct Renamed {
    std::int64_t minor = 0;
    struct Previous {
        std::int64_t cents = 0;
    };
    static Renamed upcast(const Previous& old) { return {old.cents}; }
};
struct Purse {
    static constexpr std::string_view name = "purse";
    using Event = std::variant<Renamed>;
    std::int64_t minor = 0;
    void apply(const Renamed& e) { minor += e.minor; }
    Decision<Event> decide(const Deposit& c) const {
        if (c.cents < 0) return Decision<Event>{Renamed{0}}.effect(Opened{"nobody"}).effect(Opened{"the police"});
        return Renamed{c.cents};
    }
};

TEST(Given, an_event_of_an_old_schema_is_given_as_it_is_stored) {
    given<Purse>(EventData{.type = "Renamed", .schema = 1, .data = R"({"cents":5})"}, Renamed{2})
        .when(Deposit{1})
        .then(Renamed{1})
        .then_state([](const Purse& purse) { EXPECT_EQ(purse.minor, 8); });
}

TEST(Given, effects_are_compared_like_events) {
    EXPECT_NO_THROW(
        given<Purse>().when(Deposit{-1}).then(Renamed{0}).then_effects(Opened{"nobody"}, Opened{"the police"}));
    EXPECT_NO_THROW(given<Purse>().when(Deposit{1}).then_effects());
    EXPECT_TRUE(has(failure_of([] { given<Purse>().when(Deposit{-1}).then_effects(Opened{"nobody"}); }),
                    "Deposit led to other effects"));
}

TEST(Given, other_events_are_shown_with_the_fields_that_differ) {
    const std::string message =
        failure_of([] { given<Account>(Deposited{50}).when(Withdraw{20}).then(Withdrawn{30}); });
    EXPECT_TRUE(has(message, "given_test.cpp:"));
    EXPECT_TRUE(has(message, "Withdraw led to other events (- expected, + actual)"));
    EXPECT_TRUE(has(message, R"(-       "cents": 30)"));
    EXPECT_TRUE(has(message, R"(+       "cents": 20)"));
    EXPECT_TRUE(has(message, "$[0].Withdrawn.cents: expected 30, actual 20"));
}

TEST(Given, another_type_or_number_of_events_is_shown) {
    const auto withdraw = [] { return given<Account>(Deposited{50}).when(Withdraw{20}); };
    EXPECT_TRUE(has(failure_of([&] { withdraw().then(Deposited{20}); }),
                    "$[0].Withdrawn.cents: expected: not there, actual 20"));
    EXPECT_TRUE(has(failure_of([&] { withdraw().then(Withdrawn{20}, Withdrawn{20}); }),
                    "$[1].Withdrawn.cents: expected 20, actual: not there"));
    EXPECT_TRUE(has(failure_of([&] { withdraw().then_nothing(); }), "actual 20"));
}

TEST(Given, a_rejection_that_was_not_expected_is_named) {
    const auto rejected = [] { return given<Account>(Deposited{50}).when(Withdraw{80}); };
    EXPECT_TRUE(has(failure_of([&] { rejected().then(Withdrawn{80}); }), R"(rejected with "insufficient_funds")"));
    EXPECT_TRUE(has(failure_of([&] { rejected().then_nothing(); }), "that nothing happens"));
    EXPECT_TRUE(has(failure_of([&] { rejected().then_rejected("frozen"); }), R"(is rejected with "frozen")"));
    EXPECT_TRUE(has(failure_of([&] { rejected().then_rejected("insufficient_funds", "too poor"); }), "too poor"));
    EXPECT_TRUE(has(failure_of([] { given<Account>(Deposited{50}).when(Withdraw{1}).then_rejected("frozen"); }),
                    R"(was accepted, and led to [{"Withdrawn":{"cents":1}}])"));
}

TEST(Given, a_state_that_is_not_as_expected_fails) {
    EXPECT_TRUE(has(failure_of([] { given<Account>(Deposited{50}).then_state({.owner = "", .balance = 49}); }),
                    "$.balance: expected 49, actual 50"));
    EXPECT_TRUE(has(
        failure_of([] { given<Account>(Deposited{50}).then_state([](const Account& a) { return a.balance == 49; }); }),
        "the account's state does not hold"));
}

struct Nested {
    static constexpr std::string_view name = "nested";
    struct Part {
        std::string id;
        std::int64_t legs = 0;
    };
    struct Moved {
        std::vector<Part> parts;
        std::optional<std::string> note;
    };
    struct Move {
        std::vector<Part> parts;
    };
    using Event = std::variant<Moved>;
    std::size_t count = 0;

    void apply(const Moved& e) { count += e.parts.size(); }
    Decision<Event> decide(const Move& c) const { return c.parts.empty() ? Decision<Event>{} : Moved{c.parts, "n"}; }
};

TEST(Given, fields_within_lists_and_structs_are_named_by_their_path) {
    const std::string message = failure_of([] {
        given<Nested>()
            .when(Nested::Move{{{"a", 1}, {"b", 2}}})
            .then(Nested::Moved{{{"a", 1}, {"b", 3}}, std::nullopt});
    });
    EXPECT_TRUE(has(message, "$[0].Moved.parts[1].legs: expected 3, actual 2"));
    EXPECT_TRUE(has(message, R"($[0].Moved.note: expected: not there, actual "n")"));
    EXPECT_FALSE(has(message, "parts[0].legs: expected"));
    EXPECT_NO_THROW(given<Nested>().when(Nested::Move{}).then_nothing());
}

}  // namespace
}  // namespace varve::testing
