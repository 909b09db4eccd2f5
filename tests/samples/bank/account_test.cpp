#include "account.h"

#include "balances.h"
#include "money.h"
#include "payments.h"

#include <varve/testing/given.h>
#include <varve/testing/stored_shapes.h>

#include <gtest/gtest.h>

namespace bank {
namespace {

using varve::testing::given;

TEST(Account, is_opened_once) {
    given<Account>().when(Open{"Alice"}).then(Opened{"Alice"}).then_state([](const Account& a) { return a.open; });
    EXPECT_NO_THROW(given<Account>(Opened{"Alice"}).when(Open{"Bob"}).then_rejected("already_open"));
}

TEST(Account, money_moves_only_on_an_open_account_and_in_amounts_above_zero) {
    EXPECT_NO_THROW({
        given<Account>().when(Deposit{1}).then_rejected("not_open");
        given<Account>().when(Withdraw{1}).then_rejected("not_open");
        given<Account>(Opened{"Alice"}).when(Deposit{0}).then_rejected("bad_amount");
        given<Account>(Opened{"Alice"}).when(Withdraw{-1}).then_rejected("bad_amount");
        given<Account>(Opened{"Alice"}).when(Deposit{5}).then(Deposited{5});
    });
}

TEST(Account, has_no_credit) {
    const auto account = given<Account>(Opened{"Alice"}, Deposited{50});
    EXPECT_NO_THROW({
        account.when(Withdraw{51}).then_rejected("insufficient_funds");
        account.when(Withdraw{50}).then(Withdrawn{50}).then_state([](const Account& a) { return a.balance == 0; });
    });
}

TEST(Account, a_frozen_one_receives_and_does_not_pay) {
    const auto account = given<Account>(Opened{"Alice"}, Deposited{50}, Frozen{"lost card"});
    EXPECT_NO_THROW({
        account.when(Withdraw{1}).then_rejected("frozen");
        account.when(Deposit{1}).then(Deposited{1});
        account.when(Freeze{}).then_nothing();
        account.when(Unfreeze{}).then(Unfrozen{}).then_state([](const Account& a) { return !a.frozen; });
    });
}

TEST(Bank, reads_what_it_has_stored) {
    EXPECT_NO_THROW((varve::testing::stored_shapes<Account, Balance>(BANK_SHAPES)));
}

TEST(Money, is_written_and_read_in_cents) {
    EXPECT_EQ(money_text(1'234'567'89), "1,234,567.89");
    EXPECT_EQ(money_text(-5), "-0.05");
    EXPECT_EQ(money_text(-1'234'50), "-1,234.50");
    EXPECT_EQ(money_text(0), "0.00");
    EXPECT_EQ(parse_money("1,234.5"), 1'234'50);
    EXPECT_EQ(parse_money("7"), 7'00);
    for (const char* wrong : {"", ".", "1.234", "-1", "1e3", "12 EUR", "99999999999999999999"}) {
        EXPECT_THROW(parse_money(wrong), varve::InvalidError) << wrong;
    }
}

TEST(Popularity, zipf_draws_accounts_in_proportion_to_their_rank) {
    const Popularity zipf{Distribution::zipf, 100, 1.0};
    std::mt19937_64 random{1};
    std::vector<double> drawn(100);
    for (int i = 0; i < 100'000; ++i) ++drawn[zipf.draw(random)];
    EXPECT_NEAR(drawn[0] / drawn[1], 2, 0.1);
    EXPECT_NEAR(drawn[0] / drawn[9], 10, 1);
}

TEST(Popularity, uniform_draws_all_accounts_alike) {
    const Popularity uniform{Distribution::uniform, 10, 1.0};
    std::mt19937_64 random{1};
    std::vector<double> drawn(10);
    for (int i = 0; i < 100'000; ++i) ++drawn[uniform.draw(random)];
    for (const double count : drawn) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Figures, a_percentile_is_a_latency_that_was_measured) {
    Figures figures;
    for (int i = 100; i >= 1; --i) figures.add({"", Ending::committed, std::chrono::microseconds{i}, 1});
    figures.finish();
    EXPECT_EQ(figures.percentile(0.5).count(), 50);
    EXPECT_EQ(figures.percentile(0.99).count(), 99);
    EXPECT_EQ(figures.percentile(0.999).count(), 100);
    EXPECT_EQ(Figures{}.percentile(0.5).count(), 0);
}

}  // namespace
}  // namespace bank
