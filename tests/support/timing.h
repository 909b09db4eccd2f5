#pragma once

#include "commands/timers.h"
#include "support/lending.h"
#include "support/reacting.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace varve {

using namespace lending;

/// A library, whose reminders are sent when the test says so.
struct Timed : Reacts {
    Timed() {
        Reminder::is_broken = false;
        Reminder::order.clear();
    }

    void lend(const std::string& book, Duration time) {
        const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
        shop.execute<Book>(book, Lend{seconds}).value();
    }
    void take_back(const std::string& book) { shop.execute<Book>(book, Return{}).value(); }
    /// As its thread would.
    void pass_time(detail::Follower& follower, Duration time) {
        for (const Time until = clock.now() + time; clock.now() < until;) {
            const std::optional<Duration> pause = follower.turn({});
            ASSERT_TRUE(pause) << follower.status().error;
            clock.advance(std::clamp<Duration>(*pause, 1ms, std::max<Duration>(until - clock.now(), 1ms)));
        }
    }
    std::size_t buckets() {
        std::size_t count = 0;
        for (const auto& one : shop.rows<detail::TimerBucket>().range({.partition = "$process-reminder"})) {
            static_cast<void>(one);
            ++count;
        }
        return count;
    }
    std::vector<Time> reminded(const std::string& book) { return shop.load<Reminder>(book).state.reminded; }
};

/// A book that is kept, and one that is returned; with an owner who dies at each request, and an heir.
struct DyingTimers : Timed {
    Duration time_to_live() const override { return 1min; }  // so long do the dead try to let go
    /// Whether the first owner has died.
    bool run(const std::shared_ptr<store::ItemStore>& inner, int dies_at, std::uint64_t applies) {
        SCOPED_TRACE("dies at request " + std::to_string(dies_at));
        begin(inner);
        const auto dying = std::make_shared<DyingStore>(inner, dies_at, applies);
        try {
            Application first{dying, options()};
            detail::Follower follower{first, idle, consumer<Reminder>()};
            work(follower);
        } catch (const Error&) {
        }
        expect_all_of_it(inner);
        return dying->is_dead();
    }
    void begin(const std::shared_ptr<store::ItemStore>& inner) {
        Application before{inner, options()};
        before.execute<Book>("kept", Lend{100}).value();
        before.execute<Book>("returned", Lend{100}).value();
        before.execute<Book>("returned", Return{}).value();
    }
    /// Timers are set, fire and are cancelled.
    void work(detail::Follower& follower) {
        follower.turn({});
        clock.advance(3min);
        follower.turn({});
        clock.advance(2s);
        follower.turn({});
    }
    void expect_all_of_it(const std::shared_ptr<store::ItemStore>& inner) {
        clock.advance(2000h);
        Application second{inner, options()};
        detail::Follower heir{second, idle, consumer<Reminder>()};
        for (int i = 0; i < 8; ++i) {
            heir.turn({});
            clock.advance(2h);
        }
        EXPECT_TRUE(second.settle(1min));
        EXPECT_EQ(events_of(second, "reminder-kept"), (Texts{"Set", "Reminded", "Set", "Reminded", "Set", "Reminded"}));
        EXPECT_EQ(events_of(second, "reminder-returned"), (Texts{"Set", "Ended"}));
        EXPECT_TRUE(detail::timers_aside(second, "$process-reminder").empty());
        for (const auto& left : second.rows<detail::TimerBucket>().range({.partition = "$process-reminder"}))
            ADD_FAILURE() << "a bucket is left: " << left.key.sort;
    }
};

}  // namespace varve
