#pragma once

#include "commands/deliverer.h"
#include "commands/follower.h"
#include "support/account.h"
#include "support/dying_store.h"

#include <varve/commands/follower_status.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/recorded_log.h>
#include <varve/testing/seeded_random.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace varve {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

struct Mail {
    std::string to;
};
struct Call {
    std::string to;
};

/// Whoever gets mail.
struct Receiver {
    bool is_down = false;
    std::set<std::string> refuses = {}, never_takes = {}, busy_for = {};
    Duration asks_for = 0s;                     ///< a pause, when it is down
    std::size_t busy_each = 0;                  ///< so often it asks for a pause; 0: when it is down
    std::function<void()> meanwhile = nullptr;  ///< once, while it is asked
    Texts got = {};
    std::vector<unsigned> attempts = {};
    std::size_t asked = 0;

    std::size_t place_of(const std::string& mail) const {
        return static_cast<std::size_t>(std::ranges::find(got, mail) - got.begin());
    }
    void operator()(const Mail& mail, const Delivery& delivery) {
        ++asked;
        attempts.push_back(delivery.attempt);
        if (const auto once = std::exchange(meanwhile, nullptr)) once();
        if (busy_each > 0 && asked % busy_each == 0) throw DeliverLater("come again", asks_for);
        if (busy_for.contains(mail.to)) throw DeliverLater("come again", asks_for);
        if (never_takes.contains(mail.to)) throw Undeliverable("nobody lives there");
        if (is_down && asks_for > 0s) throw DeliverLater("come again", asks_for);
        if (is_down || refuses.contains(mail.to)) throw std::runtime_error("the door is closed");
        got.push_back(mail.to);
    }
};

struct Delivering : ::testing::Test {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::SeededRandom random{1};
    testing::RecordedLog log;
    std::shared_ptr<store::ItemStore> store = open("memory:");
    Receiver receiver;
    DeliverOptions how = {};

    /// Of its lock, which nobody renews.
    virtual Duration time_to_live() const { return 1000h; }
    ApplicationOptions options() {
        return {.sweep = false,
                .locks = {.time_to_live = time_to_live(), .heartbeat_thread = false},
                .runtime = {.clock = clock, .random = random, .log = log}};
    }
    Application shop{store, options()};
    std::atomic<int> idle = 0;

    detail::Consumer consumer() {
        const auto take = [this](const Delivery& one) {
            const auto mail = json::decode<Mail>(one.effect.event.data);
            if (!mail) throw std::runtime_error("no mail: " + mail.error().message);
            receiver(*mail, one);
        };
        return detail::consumer_of(delivery_name<Mail>(),
                                   std::make_shared<detail::Deliverer>(shop.runtime(), "Mail", take, how));
    }
    /// One after the other, on the stream of this account.
    void send(const std::string& account, const Texts& all) {
        shop.transact([&](Transaction& tx) {
                tx.execute<account::Account>(account, account::Deposit{1});
                for (const std::string& to : all) tx.effect(Mail{to});
            })
            .value();
    }
    void pass_time(detail::Follower& follower, Duration time) {
        for (const SteadyTime until = clock.steady_now() + time; clock.steady_now() < until;) {
            const std::optional<Duration> pause = follower.turn({});
            ASSERT_TRUE(pause) << follower.status().error;
            clock.advance(std::max<Duration>(*pause, 1ms));
        }
    }
};

/// Two streams, of which one fails at first, with an owner who dies at each request, and an heir.
struct DyingDelivery : Delivering {
    Duration time_to_live() const override { return 1min; }  // so long do the dead try to let go
    /// Whether the first owner has died.
    bool run(const std::shared_ptr<store::ItemStore>& inner, int dies_at, std::uint64_t applies) {
        SCOPED_TRACE("dies at request " + std::to_string(dies_at));
        begin(inner);
        const auto dying = std::make_shared<DyingStore>(inner, dies_at, applies);
        try {
            Application first{dying, options()};
            detail::Follower follower{first, idle, consumer()};
            work(follower);
        } catch (const Error&) {
        }
        expect_all_of_it(inner);
        return dying->is_dead();
    }
    void begin(const std::shared_ptr<store::ItemStore>& inner) {
        receiver = {};
        receiver.refuses = {"a2"};
        Application before{inner, options()};
        const auto tell = [&](const std::string& account, const Texts& all) {
            before
                .transact([&](Transaction& tx) {
                    tx.execute<account::Account>(account, account::Deposit{1});
                    for (const std::string& to : all) tx.effect(Mail{to});
                })
                .value();
        };
        tell("a", {"a1", "a2"});
        tell("b", {"b1"});
        tell("a", {"a3"});
        tell("b", {"b2"});
    }
    /// Sets a stream aside and takes it up again.
    void work(detail::Follower& follower) {
        follower.turn({});
        for (int i = 0; i < 3; ++i) {
            clock.advance(10s);
            if (i == 1) receiver.refuses.clear();
            follower.turn({});
        }
    }
    void expect_all_of_it(const std::shared_ptr<store::ItemStore>& inner) {
        clock.advance(2000h);
        receiver.refuses.clear();
        Application second{inner, options()};
        detail::Follower heir{second, idle, consumer()};
        for (int i = 0; i < 30; ++i) {
            heir.turn({});
            clock.advance(30s);
        }
        EXPECT_EQ(firsts_of('a'), (Texts{"a1", "a2", "a3"}));
        EXPECT_EQ(firsts_of('b'), (Texts{"b1", "b2"}));
        EXPECT_LE(receiver.got.size(), 10u) << "no more than once for each of the two";
        EXPECT_TRUE(heir.parked().empty());
        EXPECT_EQ(heir.status().parked, 0);
    }

  private:
    Texts firsts_of(char stream) const {
        Texts firsts;
        for (const std::string& one : receiver.got) {
            if (one.front() == stream && std::ranges::find(firsts, one) == firsts.end()) firsts.push_back(one);
        }
        return firsts;
    }
};

}  // namespace varve
