#include "support/account.h"

#include <varve/store/item_store.h>

#include <functional>
#include <thread>

#include <gtest/gtest.h>

// What a handler or a body must not do, since it would wait for itself.
namespace varve {
namespace {

using namespace account;

struct Struck {
    int times = 0;
};
struct Ring {};
/// Does as it is told while it decides.
struct Bell {
    static constexpr std::string_view name = "bell";
    using Event = std::variant<Struck>;
    static inline std::function<void()> while_deciding;

    void apply(const Struck&) {}
    Decision<Event> decide(const Ring&) const {
        while_deciding();
        return Struck{1};
    }
};

struct InsideACommand : ::testing::Test {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Application bank{store, {.sweep = false}};
    Application other{store, {.sweep = false}};

    ~InsideACommand() override { Bell::while_deciding = nullptr; }

    void expect_refused(const char* call, const std::function<void()>& what) {
        try {
            what();
            ADD_FAILURE() << call << " was taken";
        } catch (const InvalidError& error) {
            EXPECT_TRUE(std::string{error.what()}.starts_with(call)) << error.what();
            EXPECT_NE(std::string{error.what()}.find("inside a handler"), std::string::npos);
        }
    }
};

TEST_F(InsideACommand, a_handler_that_executes_on_its_own_aggregate_is_told_at_once) {
    Bell::while_deciding = [&] { static_cast<void>(bank.execute<Bell>("b", Ring{})); };
    expect_refused("execute", [&] { static_cast<void>(bank.execute<Bell>("b", Ring{})); });
    Bell::while_deciding = [] {};
    EXPECT_TRUE(bank.execute<Bell>("b", Ring{})) << "the lane goes on";
    EXPECT_EQ(bank.load<Bell>("b").version, 1);
}

TEST_F(InsideACommand, a_handler_that_waits_for_what_it_submits_is_told_at_once) {
    Bell::while_deciding = [&] { static_cast<void>(bank.submit<Bell>("b", Ring{}).get()); };
    expect_refused("submit", [&] { static_cast<void>(bank.execute<Bell>("b", Ring{})); });
    expect_refused("submit", [&] { static_cast<void>(bank.submit<Bell>("b", Ring{}).get()); });
}

TEST_F(InsideACommand, two_handlers_that_execute_crosswise_are_both_told) {
    Bell::while_deciding = [&] { static_cast<void>(bank.execute<Account>("alice", Deposit{1})); };
    std::vector<std::jthread> threads;
    for (const char* id : {"a", "b"}) {
        threads.emplace_back(
            [this, id] { expect_refused("execute", [&] { static_cast<void>(bank.execute<Bell>(id, Ring{})); }); });
    }
}

TEST_F(InsideACommand, a_body_that_executes_beside_its_transaction_is_told_at_once) {
    for (const char* id : {"alice", "bob"}) {
        expect_refused("execute", [&] {
            static_cast<void>(bank.transact([&](Transaction& tx) {
                tx.execute<Account>("alice", Deposit{1});
                static_cast<void>(bank.execute<Account>(id, Deposit{1}));
            }));
        });
    }
    expect_refused("transact", [&] {
        static_cast<void>(bank.transact([&](Transaction&) { static_cast<void>(bank.transact([](Transaction&) {})); }));
    });
    EXPECT_EQ(bank.load<Account>("alice").version, 0);
    EXPECT_TRUE(bank.execute<Account>("alice", Deposit{1}));
}

TEST_F(InsideACommand, another_application_may_be_used) {
    const Outcome outcome = bank.transact([&](Transaction& tx) {
        EXPECT_TRUE(other.execute<Account>("bob", Deposit{1}, {.command_id = "once"}));
        tx.execute<Account>("alice", Deposit{1});
    });
    EXPECT_TRUE(outcome);
}

}  // namespace
}  // namespace varve
