#pragma once

#include "commands/follower.h"
#include "processes/process_consumer.h"
#include "support/checkout.h"
#include "support/dying_store.h"

#include <varve/commands/follower_status.h>
#include <varve/events/event_store.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>
#include <varve/testing/seeded_random.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve {

using namespace checkout;
using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

/// A shop, whose processes take turns when the test says so.
struct Reacts : ::testing::Test {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::SeededRandom random{1};
    testing::RecordedLog log;
    std::shared_ptr<store::ItemStore> store = open("memory:");
    ProcessOptions how = {};

    /// Of its lock, which nobody renews.
    virtual Duration time_to_live() const { return 1000h; }
    ApplicationOptions options() {
        return {.sweep = false,
                .locks = {.time_to_live = time_to_live(), .heartbeat_thread = false},
                .runtime = {.clock = clock, .random = random, .log = log}};
    }
    Application shop{store, options()};
    std::atomic<int> idle = 0;

    template <class P>
    detail::Consumer consumer() const {
        return detail::consumer_of(detail::process_type<P>(typename P::ListensTo{}), how);
    }
    void place(const std::string& order, const std::string& product, std::int64_t quantity = 1,
               const CommandOptions& with = {}) {
        shop.execute<Purchase>(order, Place{product, quantity}, with).value();
    }
    void fill(const std::string& product, std::int64_t quantity) {
        shop.execute<Stock>(product, Fill{quantity}).value();
    }
    /// The names of the events in a stream.
    static Texts events_of(Application& application, const std::string& stream) {
        Texts names;
        for (const RecordedEvent& event : application.events().load(stream).events) names.push_back(event.event.type);
        return names;
    }
    Texts events_of(const std::string& stream) { return events_of(shop, stream); }
};

/// Orders that are placed, one of which cannot be, and a payment that fails; with an owner who dies at each request,
/// and an heir.
struct DyingReaction : Reacts {
    Duration time_to_live() const override { return 1min; }  // so long do the dead try to let go
    /// Whether the first owner has died.
    bool run(const std::shared_ptr<store::ItemStore>& inner, int dies_at, std::uint64_t applies) {
        SCOPED_TRACE("dies at request " + std::to_string(dies_at));
        begin(inner);
        const auto dying = std::make_shared<DyingStore>(inner, dies_at, applies);
        try {
            Application first{dying, options()};
            detail::Follower follower{first, idle, consumer<Checkout>()};
            work(follower);
        } catch (const Error&) {
        }
        expect_all_of_it(inner);
        return dying->is_dead();
    }
    void begin(const std::shared_ptr<store::ItemStore>& inner) {
        Application before{inner, options()};
        before.execute<Stock>("p", Fill{2}).value();
        before.execute<Purchase>("o1", Place{"p", 2}).value();
        before.execute<Purchase>("o2", Place{"p", 1}).value();
        before.execute<Payment>("x", Pay{"o1"}).value();
    }
    static void work(detail::Follower& follower) {
        for (int i = 0; i < 2; ++i) follower.turn({});
    }
    void expect_all_of_it(const std::shared_ptr<store::ItemStore>& inner) {
        clock.advance(2000h);
        Application second{inner, options()};
        detail::Follower heir{second, idle, consumer<Checkout>()};
        for (int i = 0; i < 5; ++i) {
            heir.turn({});
            clock.advance(30s);
        }
        EXPECT_TRUE(second.settle(1min));
        EXPECT_EQ(events_of(second, "checkout-o1"), (Texts{"Started", "Done"}));
        EXPECT_EQ(events_of(second, "checkout-o2"), (Texts{"GivenUp"}));
        EXPECT_EQ(events_of(second, "stock-p"), (Texts{"Filled", "Reserved"}));
        EXPECT_EQ(events_of(second, "purchase-o2"), (Texts{"Placed", "Cancelled"}));
        EXPECT_EQ(second.events().effects("checkout-o1", 1).size(), 1u);
        EXPECT_TRUE(heir.parked().empty());
    }
};

}  // namespace varve
