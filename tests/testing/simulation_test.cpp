#include "support/checkout.h"
#include "support/lending.h"
#include "support/sanitized.h"

#include <varve/commands/delivery.h>
#include <varve/core/error.h>
#include <varve/processes/schedule.h>
#include <varve/testing/simulation.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

using namespace checkout;
using namespace std::chrono_literals;

constexpr int orders = 4;
constexpr std::int64_t in_stock = 6;

/// Orders of two each, of which one too many is placed; whoever asks for a payment gets it.
struct CheckoutWorld {
    Simulation world;
    std::map<std::string, int> asked = {};  ///< for each order

    explicit CheckoutWorld(std::uint64_t seed, SimulationOptions options = {})
        : world(seed, open("memory:"), soon(options)) {
        for (int i = 0; i < 2; ++i) {
            world.service("shop", [this](Application& shop) {
                run<Checkout>(shop, {.poll_interval = 500ms});
                const auto pay = [&](const AskPayment& e, const Delivery& d) {
                    ++asked[e.order];
                    shop.execute<Payment>(e.order, Pay{e.order}, {.command_id = d.effect.id}).value();
                };
                deliver<AskPayment>(shop, pay, {.poll_interval = 500ms});
            });
        }
        world.client("customer", [](SimulatedClient& self) {
            self.application.execute<Stock>("p", Fill{in_stock}, {.command_id = "fill"}).value();
            for (int i = 0; i < orders; ++i) {
                const std::string order = "o" + std::to_string(i);
                self.application.execute<Purchase>(order, Place{"p", 2}, {.command_id = "place-" + order}).value();
                self.sleep(1s);
            }
        });
    }
    /// Who is gone is soon taken for dead.
    static const SimulationOptions& soon(SimulationOptions& options) {
        options.application.locks.time_to_live = 2s;
        return options;
    }
    void expect_all_of_it() {
        Application& shop = world.at_rest();
        int done = 0;
        int given_up = 0;
        for (int i = 0; i < orders; ++i) {
            const std::string order = "o" + std::to_string(i);
            std::vector<std::string> events;
            for (const RecordedEvent& event : shop.history<Checkout>(order).events) events.push_back(event.event.type);
            if (events == std::vector<std::string>{"Started", "Done"}) {
                ++done;
                EXPECT_GE(asked[order], 1) << order;
            } else {
                EXPECT_EQ(events, std::vector<std::string>{"GivenUp"}) << order;
                EXPECT_EQ(asked[order], 0) << order;
                ++given_up;
            }
        }
        EXPECT_EQ(done, 3);
        EXPECT_EQ(given_up, 1);
        EXPECT_EQ(shop.load<Stock>("p").state.reserved, in_stock);
    }
};

TEST(Simulation, of_one_seed_is_always_the_same) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CheckoutWorld once{seed};
        once.world.run();
        CheckoutWorld again{seed};
        again.world.run();
        EXPECT_EQ(once.world.report().trace, again.world.report().trace) << seed;
        EXPECT_GT(once.world.report().requests, 100u);
        EXPECT_GE(once.world.report().simulated, 10min);
    }
}

TEST(Simulation, processes_and_deliveries_come_right_whatever_happens) {
    std::uint64_t kills = 0;
    simulate(40, [&](std::uint64_t seed) {
        SCOPED_TRACE(replay(seed));
        CheckoutWorld world{seed};
        world.world.run();
        world.expect_all_of_it();
        kills += world.world.report().kills;
        if (::testing::Test::HasFailure()) throw std::runtime_error("see above");
    });
    EXPECT_GT(kills, 20u);
}

TEST(Simulation, the_same_on_a_store_that_keeps_no_order_and_writes_one_item_at_a_time) {
    simulate(20, [](std::uint64_t seed) {
        SCOPED_TRACE(replay(seed));
        CheckoutWorld world{seed, {.disguise = {.atomic_writes_max = 0, .no_changes = true}}};
        world.world.run();
        world.expect_all_of_it();
        if (::testing::Test::HasFailure()) throw std::runtime_error("see above");
    });
}

TEST(Simulation, goes_through_all_requests_of_a_process_and_kills_it_at_each) {
    for (const bool applied : {false, true}) {
        std::uint64_t request = 1;
        for (bool was_killed = true; was_killed && !::testing::Test::HasFailure(); request += is_sanitized ? 10 : 3) {
            SCOPED_TRACE("killed at request " + std::to_string(request));
            CheckoutWorld world{1, {.troubles = Troubles{}}};
            world.world.kill("shop", {.request = request, .applied = applied});
            world.world.run(30s);
            world.expect_all_of_it();
            was_killed = world.world.report().kills > 0;
        }
        EXPECT_GT(request, 100u);
    }
}

TEST(Simulation, lets_a_day_of_timers_pass_in_a_moment) {
    using namespace lending;
    Reminder::is_broken = false;
    Simulation world{5, open("memory:"), {.troubles = Troubles{}}};
    world.service("library", [](Application& library) {
        run<Reminder>(library, {.poll_interval = 10s});
        run_scheduled<Book, Lend>(library, {.poll_interval = 10s});
    });
    world.client("desk", [](SimulatedClient& self) {
        const Time now = self.application.runtime().clock.get().now();
        schedule<Book>(self.application, "b", Lend{3600}, now + 12h);
    });
    world.run(24h);
    EXPECT_EQ(world.at_rest().load<Reminder>("b").state.reminded.size(), 3u);
}

TEST(Simulation, a_client_that_is_killed_begins_anew_in_another_process) {
    Simulation world{1, open("memory:"), {.troubles = Troubles{}}};
    std::vector<int> steps;
    world.kill("client", {.request = 6});
    world.client("client", [&](SimulatedClient& self) {
        for (int i = 0; i < 5; ++i) {
            steps.push_back(i);
            self.application.execute<Stock>("p", Fill{1}, {.command_id = std::to_string(i)}).value();
        }
    });
    world.run(1s);
    EXPECT_EQ(world.report().kills, 1u);
    EXPECT_GT(steps.size(), 5u);
    EXPECT_EQ(world.at_rest().load<Stock>("p").version, 5);
}

TEST(Simulation, what_a_client_throws_passes_through_and_what_the_store_does_to_it_does_not) {
    int lives = 0;
    Simulation world{1, open("memory:"), {.troubles = Troubles{}}};
    world.client("hapless", [&](SimulatedClient&) {
        if (++lives < 3) throw UnavailableError("nobody answers");
        throw std::domain_error("this is what is wrong");
    });
    EXPECT_THROW(world.run(), std::domain_error);
    EXPECT_EQ(lives, 3);
}

TEST(Simulation, a_future_is_waited_for_in_its_time) {
    Simulation world{1, open("memory:"), {.troubles = Troubles{}}};
    bool was_accepted = false;
    world.client("client", [&](SimulatedClient& self) {
        was_accepted = self.get(self.application.submit<Stock>("p", Fill{1})).has_value();
    });
    world.run(1s);
    EXPECT_TRUE(was_accepted);
}

TEST(Simulation, that_does_not_come_to_an_end_says_so) {
    Simulation world{1, open("memory:"), {.troubles = Troubles{}, .requests_max = 500}};
    world.client("busy", [](SimulatedClient& self) {
        for (;;) self.application.execute<Stock>("p", Fill{1}).value();
    });
    try {
        world.run();
        ADD_FAILURE() << "it ended";
    } catch (const std::logic_error& error) {
        EXPECT_NE(std::string{error.what()}.find("within 500 requests (SimulationOptions::requests_max)"),
                  std::string::npos)
            << error.what();
    }
}

TEST(Simulation, is_refused_without_a_store_and_runs_once) {
    EXPECT_THROW(Simulation(1, nullptr), InvalidError);
    Simulation world{1, open("memory:")};
    EXPECT_THROW(world.at_rest(), InvalidError);
    world.run(1s);
    EXPECT_THROW(world.run(), InvalidError);
    EXPECT_THROW(world.client("late", [](SimulatedClient&) {}), InvalidError);
    EXPECT_THROW(world.kill("late", {}), InvalidError);
}

TEST(Simulation, kills_nobody_who_is_not_there) {
    Simulation world{1, open("memory:")};
    world.service("shop", [](Application&) {});
    EXPECT_THROW(world.kill("shop", {.request = 0}), InvalidError);
    world.kill("shpo", {.request = 3});
    try {
        world.run(1s);
        ADD_FAILURE() << "it ran";
    } catch (const InvalidError& error) {
        EXPECT_NE(std::string{error.what()}.find("'shpo' (did you mean 'shop'?"), std::string::npos) << error.what();
    }
}

TEST(Simulation, a_failing_seed_is_named_with_the_command_that_repeats_it) {
    std::vector<std::uint64_t> seeds;
    ::testing::internal::CaptureStderr();
    EXPECT_THROW(simulate(5,
                          [&](std::uint64_t seed) {
                              seeds.push_back(seed);
                              if (seed == 3) throw std::runtime_error("no");
                          }),
                 std::runtime_error);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(seeds, (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(said.find("seed=3 replay: VARVE_SEED=3 "), 0u) << said;
    EXPECT_NE(said.find("test_testing"), std::string::npos) << said;

    seeds.clear();
    setenv("VARVE_SEED", "17", 1);
    simulate(5, [&](std::uint64_t seed) { seeds.push_back(seed); });
    EXPECT_EQ(seeds, (std::vector<std::uint64_t>{17}));
    for (const char* const no_seed : {"", "first", "17th", "-1", "18446744073709551616"}) {
        setenv("VARVE_SEED", no_seed, 1);
        EXPECT_THROW(simulate(5, [](std::uint64_t) { ADD_FAILURE() << "it ran"; }), InvalidError) << no_seed;
    }
    unsetenv("VARVE_SEED");
}

}  // namespace
}  // namespace varve::testing
