// A read model that is added to a bank which has been at work for long, and goes on working.

#pragma once

#include "support/account.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/verified.h>
#include <varve/store/item_store.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace varve::on_servers {

using namespace account;

inline constexpr std::size_t customers = 100;
inline constexpr std::size_t writers = 4;

inline std::string customer(std::size_t number) {
    return "customer-" + std::to_string(number % customers);
}

inline void transfer(Application& bank, std::size_t number) {
    bank.transact([&](Transaction& tx) {
            tx.execute<Account>(customer(number), Withdraw{1});
            tx.execute<Account>(customer(7 * number + 1), Deposit{1});
        })
        .value();
}

/// After so many transfers. `open` gives a handle on one new store each time.
inline void add_read_model(const std::function<std::shared_ptr<store::ItemStore>()>& open, int transfers) {
    constexpr std::chrono::minutes patience{10};
    Application bank{open(), {.retry = {.time_max = patience}}};
    for (std::size_t i = 0; i < customers; ++i) bank.execute<Account>(customer(i), Deposit{1'000'000}).value();

    std::atomic<int> left = transfers;
    std::array<std::atomic<std::size_t>, writers> done{};
    std::vector<std::jthread> threads;
    for (std::size_t writer = 0; writer < writers; ++writer) {
        threads.emplace_back([&, writer](const std::stop_token& stop) {
            try {
                for (std::size_t i = 0; !stop.stop_requested(); ++i) {
                    transfer(bank, writer + writers * i);
                    ++done.at(writer);
                    if (--left == 0) left.notify_all();
                }
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
                left = 0;
                left.notify_all();
            }
        });
    }
    for (int now = left; now > 0; now = left) left.wait(now);

    Application other{open(), {.retry = {.time_max = patience}}};
    std::array<std::size_t, writers> before{};
    for (std::size_t writer = 0; writer < writers; ++writer) before.at(writer) = done.at(writer);
    other.follow<Account>(ProjectBalance{});
    ASSERT_TRUE(other.wait_for<ProjectBalance>({}, patience)) << other.followers().front().error;
    for (std::size_t writer = 0; writer < writers; ++writer)
        EXPECT_GT(done.at(writer), before.at(writer)) << "nobody had to wait until it was there";
    threads.clear();

    ASSERT_TRUE(other.wait_for<ProjectBalance>({}, patience));
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < customers; ++i) {
        const Balance balance = other.rows<Balance>().get(customer(i)).value_or(Balance{});
        EXPECT_EQ(balance.cents, bank.load<Account>(customer(i)).state.balance) << customer(i);
        sum += balance.cents;
    }
    EXPECT_EQ(sum, 1'000'000 * static_cast<std::int64_t>(customers));
    EXPECT_GE(other.followers().front().events, 2 * transfers);
    EXPECT_TRUE(other.verify<ProjectBalance>().differences.empty());
}

}  // namespace varve::on_servers
