// The isolation table on a server.

#pragma once

#include "isolation/cases.h"
#include "isolation/table.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace varve::on_servers {

using namespace isolation;

struct Schedules {
    std::vector<Interleaving::Schedule> all;  ///< until it came about
    std::optional<Interleaving::Schedule> brings_it_about;
};

inline Schedules in_memory(const Case& what, Subject subject, Way way, Level level) {
    World world{varve::open("memory:"), subject, way};
    Schedules schedules;
    every_schedule([&](const Interleaving::Schedule& schedule) -> std::optional<Interleaving::Cut> {
        schedules.all.push_back(schedule);
        const Scenario scenario = what.make(world, level);
        const Interleaving::Cut cut = world.interleaving().run(scenario.parties, schedule);
        if (!scenario.happened()) return cut;
        schedules.brings_it_about = schedule;
        return std::nullopt;
    });
    return schedules;
}

/// Every schedule of every cell is too much for a server: what may happen is tried with the schedule that brings it
/// about in memory, what may not with a sample of all that memory knows.
class IsolationSample {
  public:
    explicit IsolationSample(std::shared_ptr<store::ItemStore> store) : store_(std::move(store)) {}

    void expect_every_cell() {
        for (const Subject subject : {Subject::rows, Subject::streams}) {
            for (const Case& what : cases()) {
                for (const Level level : levels) {
                    const std::optional<bool> may = may_happen(what.name, subject, Way::protocol, level);
                    if (may) try_cell(what, subject, Way::protocol, level, *may);
                }
            }
        }
        std::cout << prevented_ << " cells prevented, " << happened_ << " happen, in " << runs_ << " schedules\n";
        EXPECT_GT(prevented_, 30u);
        EXPECT_GT(happened_, 15u);
    }

  private:
    static constexpr std::size_t sample = 4;
    static constexpr int tries_max = 40;

    bool happens(const Case& what, World& world, Level level, const Interleaving::Schedule& schedule,
                 Interleaving::Cut* cut = nullptr) {
        ++runs_;
        const Scenario scenario = what.make(world, level);
        const Interleaving::Cut was = world.interleaving().run(scenario.parties, schedule);
        if (cut != nullptr) *cut = was;
        return scenario.happened();
    }

    /// A server ends a range with an empty page, which is a step more than in memory: then it is near by.
    bool can_happen(const Case& what, World& world, Level level, const Interleaving::Schedule& known) {
        bool found = happens(what, world, level, known);
        int tries = 0;
        every_schedule([&](const Interleaving::Schedule& schedule) -> std::optional<Interleaving::Cut> {
            if (found || ++tries > tries_max) return std::nullopt;
            Interleaving::Cut cut;
            found = happens(what, world, level, schedule, &cut);
            return cut;
        });
        return found;
    }

    void try_cell(const Case& what, Subject subject, Way way, Level level, bool may) {
        const std::string cell =
            std::string{what.name} + " of " + to_string(subject) + ", " + to_string(way) + ", " + to_string(level);
        const Schedules known = in_memory(what, subject, way, level);
        World world{store_, subject, way, ++seed_};
        ASSERT_EQ(known.brings_it_about.has_value(), may) << cell << ", in memory";
        if (may) {
            ++happened_;
            EXPECT_TRUE(can_happen(what, world, level, *known.brings_it_about)) << cell << " did not come about";
            return;
        }
        ++prevented_;
        const std::size_t count = std::min(sample, known.all.size());
        for (std::size_t i = 0; i < count; ++i) {
            // Another part of them for each cell.
            const auto& schedule = known.all[(i * known.all.size() / count + prevented_) % known.all.size()];
            EXPECT_FALSE(happens(what, world, level, schedule)) << cell << " came about when " << to_string(schedule);
        }
    }

    std::shared_ptr<store::ItemStore> store_;
    std::uint64_t seed_ = 0;
    std::size_t prevented_ = 0;
    std::size_t happened_ = 0;
    std::size_t runs_ = 0;
};

}  // namespace varve::on_servers
