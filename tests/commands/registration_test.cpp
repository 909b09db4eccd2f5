#include "commands/application_parts.h"
#include "support/account.h"

#include <varve/locks/locks.h>
#include <varve/store/item_store.h>
#include <varve/testing/manual_clock.h>

#include <future>
#include <thread>
#include <type_traits>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;

static_assert(!std::is_copy_constructible_v<Transaction> && !std::is_move_constructible_v<Transaction>);
static_assert(!std::is_copy_constructible_v<ProjectionContext> && !std::is_move_constructible_v<ProjectionContext>);
static_assert(!std::is_copy_constructible_v<Application> && !std::is_move_constructible_v<Application>);
static_assert(!std::is_copy_constructible_v<transactions::Coordinator>);
static_assert(!std::is_copy_constructible_v<aggregates::Repository>);
static_assert(!std::is_copy_constructible_v<detail::RowTables>);
static_assert(!std::is_copy_constructible_v<Locks>);
static_assert(!std::is_copy_constructible_v<Lock> && std::is_nothrow_move_constructible_v<Lock>);
// Handles without a state of their own: a copy does what the original does.
static_assert(std::is_copy_constructible_v<Rows<Balance>> && std::is_copy_constructible_v<RowsInTransaction<Balance>>);

static_assert(std::is_default_constructible_v<RowKey> && std::is_copy_assignable_v<ApplicationOptions>);

template <class Act>
std::string config_error_of(Act act) {
    try {
        act();
    } catch (const ConfigError& error) {
        return error.what();
    }
    ADD_FAILURE() << "no ConfigError";
    return {};
}

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
}

namespace other {
struct Account : account::Account {};
struct Balance {
    static constexpr std::string_view table = "balances";
    static constexpr bool sorted = true;
    std::int64_t points = 0;
};
}  // namespace other

struct Registration : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store};
};

TEST_F(Registration, two_aggregates_of_one_name_are_refused_with_both_their_types) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    const std::vector<std::string> both{"two aggregates are called 'account'", "varve::account::Account and ",
                                        "other::Account"};
    expect_has(config_error_of([&] { static_cast<void>(bank.execute<other::Account>("bob", Deposit{1})); }), both);
    expect_has(config_error_of([&] { bank.load<other::Account>("bob"); }), both);
    expect_has(config_error_of([&] { bank.load<other::Account>("bob", AsOf::version(1)); }), both);
    expect_has(config_error_of([&] { bank.load<other::Account>("bob", AsOf::time({})); }), both);
    expect_has(config_error_of([&] { bank.check_snapshot<other::Account>("bob"); }), both);
    expect_has(config_error_of([&] { static_cast<void>(bank.submit<other::Account>("bob", Deposit{1}).get()); }), both);
    const auto in_body = [](Transaction& tx) { tx.load<other::Account>("bob"); };
    expect_has(config_error_of([&] { static_cast<void>(bank.transact(in_body)); }), both);
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{1}));

    Application another{store};
    EXPECT_EQ(another.load<other::Account>("alice").state.balance, 2) << "each application has types of its own";
}

TEST_F(Registration, a_projection_of_another_aggregate_of_the_name_is_refused) {
    bank.project<Account>(ProjectBalance{});
    expect_has(config_error_of([&] { bank.project<other::Account>(ProjectBalance{}); }), {"called 'account'"});
}

TEST_F(Registration, two_structs_on_one_table_are_refused_with_both_their_types) {
    static_cast<void>(bank.rows<Balance>());
    const std::vector<std::string> both{"two read models are called 'balances'", "varve::account::Balance and ",
                                        "other::Balance"};
    expect_has(config_error_of([&] { static_cast<void>(bank.rows<other::Balance>()); }), both);
    const auto in_body = [](Transaction& tx) { tx.rows<other::Balance>().put({"alice", "1"}, {}); };
    expect_has(config_error_of([&] { static_cast<void>(bank.transact(in_body)); }), both);
    EXPECT_FALSE(bank.rows<Balance>().get("alice"));
}

TEST_F(Registration, one_projection_twice_is_refused) {
    bank.project<Account>(ProjectBalance{});
    expect_has(config_error_of([&] { bank.project<Account>(ProjectBalance{}); }),
               {"ProjectBalance of varve::account::Account is registered twice"});
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    EXPECT_EQ(bank.rows<Balance>().get("alice"), Balance{1});
}

struct Late {
    void operator()(const Deposited&, ProjectionContext&) const {}
};

TEST_F(Registration, a_projection_after_the_first_command_is_refused) {
    using Act = std::function<void(Application&)>;
    const Act commands[] = {
        [](Application& app) { static_cast<void>(app.execute<Account>("alice", Deposit{1})); },
        [](Application& app) { static_cast<void>(app.submit<Account>("alice", Deposit{1}).get()); },
        [](Application& app) { static_cast<void>(app.transact([](Transaction&) {})); },
    };
    for (const Act& command : commands) {
        Application app{store};
        app.load<Account>("alice");
        static_cast<void>(app.rows<Balance>());
        app.project<Account>(ProjectBalance{});
        command(app);
        expect_has(config_error_of([&] { app.project<Account>(Late{}); }),
                   {"Late of varve::account::Account comes after the first command", "call project() before"});
    }
}

TEST_F(Registration, types_are_met_by_many_threads_at_once) {
    std::vector<std::jthread> threads;
    std::atomic<int> refused = 0;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            try {
                if (i % 2 == 0) {
                    bank.load<Account>("alice");
                } else {
                    bank.load<other::Account>("alice");
                }
            } catch (const ConfigError&) {
                ++refused;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(refused, 4) << "whichever came first is the one";
}

TEST(ApplicationOptions, can_be_assigned_with_their_runtime) {
    testing::ManualClock clock;
    ApplicationOptions options;
    options.runtime.clock = clock;
    ApplicationOptions others;
    others = options;
    EXPECT_EQ(&others.runtime.clock.get(), &clock);
    EXPECT_NE(&ApplicationOptions{}.runtime.clock.get(), &clock);
}

}  // namespace
}  // namespace varve
