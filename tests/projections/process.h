#pragma once

#include "commands/keeper.h"
#include "projections/following.h"

#include <varve/testing/manual_world.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace varve {

/// A process whose followers take their turns where the test says so.
struct Process {
    Application bank;
    std::atomic<int> idle = 0;
    detail::Keeper keeper;

    Process(std::shared_ptr<store::ItemStore> store, const ApplicationOptions& with, detail::Consumer consumer)
        : bank(std::move(store), with), keeper(bank, idle, std::move(consumer)) {}
    template <class Projection>
    Process(std::shared_ptr<store::ItemStore> store, const ApplicationOptions& with, Projection projection,
            const FollowOptions& options = {})
        : Process(std::move(store), with,
                  detail::consumer_of(
                      Projection::name,
                      {detail::shared_projection<Account>(std::make_shared<const Projection>(std::move(projection)))},
                      options)) {}

    /// Of the only one of this name, or the first of its partitions.
    std::optional<Duration> turn_of(std::string_view name) {
        const std::vector<std::shared_ptr<detail::Follower>> followers = keeper.followers(name);
        return followers.empty() ? std::nullopt : followers.front()->turn({});
    }
    std::size_t retry_parked(std::string_view name) {
        return std::async(std::launch::async, [&] { return keeper.followers(name).front()->retry_parked(); }).get();
    }
    std::vector<FollowerStatus> statuses() {
        std::vector<FollowerStatus> all;
        keeper.add_statuses(all);
        return all;
    }
};

/// Nothing happens by itself.
struct FollowingStepByStep : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<store::ItemStore> store = open("memory:");
    testing::RecordedLog log;

    ApplicationOptions world() {
        return options(
            {.transactions = {.answer_time_max = 1s}, .locks = {.heartbeat_thread = false}, .runtime = {.log = log}});
    }
};

}  // namespace varve
