#include "support/account.h"

#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/manual_world.h>
#include <varve/testing/seeded_random.h>
#include <varve/varve.h>

#include <functional>

#include <gtest/gtest.h>

// Two processes whose sources of randomness and clocks say the same, so that their transactions have the same ids. Ids
// have 74 random bits; only a broken machine brings this about. It must not be told as a success all the same.

namespace varve::transactions {
namespace {

using namespace account;

struct Twin : testing::ManualWorld {
    testing::SeededRandom random{1};
    Application bank;

    Twin(const std::shared_ptr<store::ItemStore>& store, Strategy strategy)
        : bank(store, options({.transactions = {.strategy = strategy}, .runtime = {.random = random}})) {
        bank.project<Account>(ProjectBalance{});
    }

    Outcome deposit(
        std::initializer_list<const char*> ids, std::int64_t cents, std::function<void()> once_decided = [] {}) {
        return bank.transact([&](Transaction& tx) {
            for (const char* id : ids) tx.execute<Account>(id, Deposit{cents});
            std::exchange(once_decided, [] {})();
        });
    }
};

class EqualIds : public ::testing::TestWithParam<Strategy> {
  protected:
    /// The second has decided when the first commits.
    void run(std::initializer_list<const char*> first, std::initializer_list<const char*> second,
             const std::map<std::string, std::int64_t>& balances) {
        const auto store = open("memory:");
        Twin one{store, GetParam()};
        Twin two{store, GetParam()};
        std::optional<Outcome> done;
        const Outcome outcome = two.deposit(second, 2, [&] { done = one.deposit(first, 1); });
        ASSERT_TRUE(outcome && done && *done);
        EXPECT_EQ(outcome->attempts, 2u);
        EXPECT_NE(outcome->transaction, (*done)->transaction);
        one.later.drain();
        two.later.drain();
        for (const auto& [id, cents] : balances) {
            EXPECT_EQ(two.bank.load<Account>(id).state.balance, cents) << id;
            EXPECT_EQ(two.bank.rows<Balance>().get(id), Balance{cents}) << id;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Each, EqualIds, ::testing::Values(Strategy::automatic, Strategy::protocol),
                         [](const auto& info) { return info.param == Strategy::protocol ? "protocol" : "automatic"; });

TEST_P(EqualIds, of_two_writers_of_one_slot_the_second_decides_again) {
    run({"x"}, {"x"}, {{"x", 3}});
}

TEST_P(EqualIds, of_two_that_share_a_participant_the_second_decides_again) {
    run({"x", "y"}, {"y", "z"}, {{"x", 1}, {"y", 3}, {"z", 2}});
    run({"y", "z"}, {"x", "y"}, {{"x", 2}, {"y", 3}, {"z", 1}});
}

TEST_P(EqualIds, of_two_that_share_the_primary_the_second_decides_again) {
    run({"x", "y"}, {"x", "z"}, {{"x", 3}, {"y", 1}, {"z", 2}});
}

TEST_P(EqualIds, of_two_that_write_the_same_items_the_second_decides_again) {
    run({"x", "y"}, {"x", "y"}, {{"x", 3}, {"y", 3}});
}

}  // namespace
}  // namespace varve::transactions
