#include "commands/timers.h"

#include "support/one_by_one_store.h"
#include "support/timing.h"

#include <varve/events/event_store.h>
#include <varve/processes/parked_timer.h>
#include <varve/processes/schedule.h>
#include <varve/testing/counting_store.h>
#include <varve/testing/later.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST_F(Timed, a_timer_comes_back_when_it_is_due_and_not_before) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    const Time lent = clock.now();
    lend("b", 90s);
    pass_time(follower, 80s);
    EXPECT_TRUE(reminded("b").empty());
    pass_time(follower, 20s);
    ASSERT_EQ(reminded("b").size(), 1u);
    EXPECT_GE(reminded("b").front(), lent + 90s);
    EXPECT_LE(reminded("b").front(), lent + 91s);
    EXPECT_EQ(shop.events().effects("reminder-b", 2).size(), 1u);
    pass_time(follower, 3h);
    EXPECT_EQ(events_of("reminder-b"), (Texts{"Set", "Reminded", "Set", "Reminded", "Set", "Reminded"}));
    EXPECT_EQ(buckets(), 0u) << "what is over is forgotten";
}

TEST_F(Timed, one_that_is_cancelled_never_comes) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    lend("b", 10min);
    pass_time(follower, 5min);
    take_back("b");
    pass_time(follower, 10min);
    EXPECT_EQ(events_of("reminder-b"), (Texts{"Set", "Ended"}));
    EXPECT_EQ(shop.events().load("reminder-b").events.back().event.data, R"({"was_waiting":true})");
    EXPECT_EQ(buckets(), 0u);
}

TEST_F(Timed, who_cancels_what_has_fired_is_told) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    lend("b", 1min);
    pass_time(follower, 4h);  // three times
    take_back("b");
    pass_time(follower, 1min);
    EXPECT_EQ(shop.events().load("reminder-b").events.back().event.data, R"({"was_waiting":false})");
}

TEST_F(Timed, what_came_due_while_nobody_ran_comes_at_once_in_the_order_of_its_time) {
    {
        detail::Follower follower{shop, idle, consumer<Reminder>()};
        lend("late", 3h);
        lend("early", 1h);
        lend("later", 26h * 30);
        follower.turn({});
    }
    clock.advance(24h * 40);
    detail::Follower heir{shop, idle, consumer<Reminder>()};
    heir.turn({});
    EXPECT_EQ(Reminder::order, (Texts{"early", "late", "later"}));
}

TEST_F(Timed, what_was_to_cancel_it_in_time_does_so_though_nobody_ran_when_it_was_due) {
    {
        detail::Follower follower{shop, idle, consumer<Reminder>()};
        lend("b", 3h);
        follower.turn({});
    }
    clock.advance(2h);
    take_back("b");
    clock.advance(24h);
    detail::Follower heir{shop, idle, consumer<Reminder>()};
    heir.turn({});
    EXPECT_EQ(events_of("reminder-b"), (Texts{"Set", "Ended"}));
}

TEST_F(Timed, one_that_is_due_in_the_past_comes_at_once_though_its_bucket_was_closed) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    lend("b", 1s);
    pass_time(follower, 2min);
    ASSERT_EQ(reminded("b").size(), 1u);
    lend("c", -90s);
    pass_time(follower, 2s);
    EXPECT_EQ(reminded("c").size(), 1u);
}

TEST_F(Timed, one_that_fails_for_good_is_aside_and_the_others_go_on) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    lend("b", 10s);
    lend("c", 20s);
    pass_time(follower, 15s);
    ASSERT_EQ(reminded("b").size(), 1u);
    Reminder::is_broken = true;
    pass_time(follower, 10s);
    EXPECT_TRUE(reminded("c").empty());
    EXPECT_NE(log.text().find("the follower '$process-reminder' has set the timer Overdue of 'c'"), std::string::npos)
        << log.text();
    const auto aside = detail::timers_aside(shop, "$process-reminder");
    ASSERT_EQ(aside.size(), 1u);
    EXPECT_EQ(aside.begin()->second.error, "the printer is out of paper");

    EXPECT_EQ(detail::retry_timers(shop, follower.consumer()), 0u);
    Reminder::is_broken = false;
    EXPECT_EQ(detail::retry_timers(shop, follower.consumer()), 1u);
    EXPECT_EQ(reminded("c").size(), 1u);
    EXPECT_EQ(detail::retry_timers(shop, follower.consumer()), 0u);
    EXPECT_EQ(reminded("c").size(), 1u);
}

TEST_F(Timed, one_that_is_aside_can_be_cancelled_or_dropped) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    Reminder::is_broken = true;
    lend("b", 1s);
    lend("c", 1s);
    pass_time(follower, 5s);
    ASSERT_EQ(detail::timers_aside(shop, "$process-reminder").size(), 2u);
    take_back("b");
    pass_time(follower, 1s);
    EXPECT_EQ(shop.events().load("reminder-b").events.back().event.data, R"({"was_waiting":true})");
    const auto aside = detail::timers_aside(shop, "$process-reminder");
    ASSERT_EQ(aside.size(), 1u);
    EXPECT_TRUE(detail::drop_timer(shop, "$process-reminder", aside.begin()->first));
    EXPECT_FALSE(detail::drop_timer(shop, "$process-reminder", aside.begin()->first));
    EXPECT_THROW(detail::drop_timer(shop, "$process-reminder", "no id"), InvalidError);
    EXPECT_THROW(detail::drop_timer(shop, "$process-remind", aside.begin()->first), InvalidError);
}

TEST_F(Timed, a_process_that_is_to_stop_stops_at_a_timer_that_fails) {
    how.on_poison = FollowOptions::OnPoison::stop;
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    Reminder::is_broken = true;
    lend("b", 1s);
    follower.turn({});
    clock.advance(5s);
    EXPECT_EQ(follower.turn({}), std::nullopt);
    EXPECT_NE(follower.status().error.find("has stopped at the timer Overdue of 'b', due "), std::string::npos)
        << follower.status().error;
    Reminder::is_broken = false;
    follower.end();
    detail::Follower heir{shop, idle, consumer<Reminder>()};
    heir.turn({});
    EXPECT_EQ(reminded("b").size(), 1u);
}

TEST_F(Timed, a_bucket_that_is_not_empty_stays_open) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    lend("b", 1s);
    follower.turn({});
    // Somebody whose clock is ahead looks at it, and sets another one while it is being closed.
    clock.advance(2min);
    follower.turn({});
    EXPECT_EQ(buckets(), 1u) << "the next reminder's";
    shop.transact([&](Transaction& tx) {
            detail::set_timer(tx, "$process-reminder", clock.now() - 119s, "c", encode_event(Overdue{3}));
        })
        .value();
    pass_time(follower, 3s);
    EXPECT_EQ(reminded("c").size(), 1u);
}

TEST_F(Timed, its_time_must_be_one_and_its_id_of_this_process) {
    for (const Time none : {Time::max(), Time::min(), parse_time("9999-12-31T23:59:59Z") + 1s}) {
        const auto set = [&](Transaction& tx) {
            detail::set_timer(tx, "$process-reminder", none, "c", encode_event(Overdue{}));
        };
        EXPECT_THROW(static_cast<void>(shop.transact(set)), InvalidError);
    }
    const auto cancel = [&](Transaction& tx) { detail::cancel_timer(tx, "$process-reminder", "something"); };
    EXPECT_THROW(static_cast<void>(shop.transact(cancel)), InvalidError);
}

TEST_F(Timed, metadata_flow_through_a_timer) {
    detail::Follower follower{shop, idle, consumer<Reminder>()};
    shop.execute<Book>("b", Lend{5}, {.correlation = "talk", .headers = {{"traceparent", "00-ab-cd-01"}}}).value();
    pass_time(follower, 10s);
    const std::vector<RecordedEvent> events = shop.events().load("reminder-b").events;
    ASSERT_GE(events.size(), 2u);
    const std::string timer = shop.load<Reminder>("b", AsOf::version(1)).state.timer;
    EXPECT_EQ(events[1].metadata->command_id, timer);
    EXPECT_EQ(events[1].metadata->causation, events[0].metadata->command_id) << "the reaction that has set it";
    EXPECT_EQ(events[1].metadata->correlation, "talk");
    EXPECT_EQ(events[1].metadata->headers.at("traceparent"), "00-ab-cd-01");
}

TEST_F(Timed, what_waits_costs_nothing) {
    const auto counting = std::make_shared<testing::CountingStore>(open("memory:"));
    testing::Later later;
    ApplicationOptions with = options();
    with.executor = &later;
    Application big{counting, with};
    const auto wait_far_away = [&](int count) {
        for (int i = 0; i < count; i += 20) {  // ThreadSanitizer follows no more locks at once than these take
            big.transact([&](Transaction& tx) {
                   for (int k = 0; k < 20; ++k) {
                       detail::set_timer(tx, "$process-reminder", clock.now() + 24h + std::chrono::minutes{i + k},
                                         "far", encode_event(Overdue{}));
                   }
               })
                .value();
        }
    };
    const auto requests_in_a_minute = [&] {
        detail::Follower follower{big, idle, consumer<Reminder>()};
        follower.turn({});
        later.drain();
        const std::uint64_t before = counting->counts().round_trips();
        pass_time(follower, 1min);
        return counting->counts().round_trips() - before;
    };
    wait_far_away(100);
    const std::uint64_t few = requests_in_a_minute();
    wait_far_away(3000);
    EXPECT_EQ(requests_in_a_minute(), few);
}

TEST_F(DyingTimers, each_fires_once_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at) has_died = run(open("memory:"), at, applies);
        EXPECT_GT(at, 20);
    }
}

TEST_F(DyingTimers, each_fires_once_on_a_store_that_writes_one_item_at_a_time) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        for (bool has_died = true; has_died && !HasFailure(); ++at)
            has_died = run(std::make_shared<OneByOneStore>(open("memory:")), at, applies);
        EXPECT_GT(at, 20);
    }
}

TEST(Timers, come_in_the_background_soon_after_they_are_due) {
    Reminder::is_broken = false;
    Application live{open("memory:"), {.sweep = false}};
    run<Reminder>(live);
    const Outcome lent = live.execute<Book>("b", Lend{0});
    ASSERT_TRUE(live.wait_for(process_name<Reminder>(), *lent, 30s));
    Clock& clock = live.runtime().clock;
    for (const SteadyTime until = clock.until(30s); clock.steady_now() < until;) {
        if (!live.load<Reminder>("b").state.reminded.empty()) break;
        clock.sleep_for(1ms);
    }
    EXPECT_EQ(live.load<Reminder>("b").state.reminded.size(), 1u);
    EXPECT_TRUE(parked_timers(live, process_name<Reminder>()).empty());
    EXPECT_EQ(retry_timers(live, process_name<Reminder>()), 0u);
    EXPECT_THROW(parked_timers(live, "nobody"), InvalidError);
}

struct Scheduled : ::testing::Test {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    testing::RecordedLog log;
    Application shop{open("memory:"), {.sweep = false, .runtime = {.log = log}}};

    Time in(Duration time) { return shop.runtime().clock.get().now() + time; }
    /// Whether it becomes true.
    template <class Condition>
    bool soon(Condition condition) {
        Clock& real = shop.runtime().clock;
        for (const SteadyTime until = real.until(30s); real.steady_now() < until; real.sleep_for(1ms)) {
            if (condition()) return true;
        }
        return false;
    }
};

TEST_F(Scheduled, a_command_is_executed_when_it_is_due) {
    run_scheduled<Book, Lend, Return>(shop);
    schedule<Book>(shop, "b", Lend{7}, in(50ms), {.command_id = "c1", .correlation = "talk"});
    ASSERT_TRUE(soon([&] { return shop.load<Book>("b").version == 1; }));
    const RecordedEvent event = shop.events().load("book-b").events.front();
    EXPECT_EQ(event.event.data, R"({"seconds":7})");
    EXPECT_EQ(event.metadata->correlation, "talk");
    EXPECT_EQ(event.metadata->causation, "c1");
}

TEST_F(Scheduled, one_that_is_cancelled_is_never_executed) {
    const std::string kept = schedule<Book>(shop, "b", Lend{7}, in(0ms));
    const std::string cancelled = schedule<Book>(shop, "c", Lend{7}, in(-1h));
    EXPECT_TRUE(cancel_scheduled<Book>(shop, cancelled));
    EXPECT_FALSE(cancel_scheduled<Book>(shop, cancelled));
    EXPECT_THROW(cancel_scheduled<Book>(shop, "something"), InvalidError);
    run_scheduled<Book, Lend>(shop);
    ASSERT_TRUE(soon([&] { return shop.load<Book>("b").version == 1; }));
    EXPECT_EQ(shop.load<Book>("c").version, 0) << "it would have come first";
    EXPECT_FALSE(cancel_scheduled<Book>(shop, kept));
}

TEST_F(Scheduled, what_is_rejected_when_it_is_due_is_set_aside) {
    run_scheduled<Book, Lend, Return>(shop);
    const std::string id = schedule<Book>(shop, "b", Return{}, in(0ms));
    ASSERT_TRUE(soon([&] { return !parked_timers(shop, schedule_name<Book>()).empty(); }));
    const ParkedTimer parked = parked_timers(shop, schedule_name<Book>()).front();
    EXPECT_EQ(parked.id, id);
    EXPECT_EQ(parked.instance, "b");
    EXPECT_EQ(parked.type, "Return");
    EXPECT_NE(parked.error.find("was rejected with \"not_lent\" (it is on the shelf)"), std::string::npos)
        << parked.error;
    shop.execute<Book>("b", Lend{1}).value();
    EXPECT_EQ(retry_timers(shop, schedule_name<Book>()), 1u);
    EXPECT_FALSE(shop.load<Book>("b").state.is_lent);
}

TEST_F(Scheduled, what_is_rejected_may_be_forgotten) {
    run_scheduled<Book, Lend, Return>(shop, {.on_rejection = ScheduleOptions::OnRejection::forget});
    schedule<Book>(shop, "b", Return{}, in(0ms));
    schedule<Book>(shop, "c", Lend{1}, in(1ms));
    ASSERT_TRUE(soon([&] { return shop.load<Book>("c").version == 1; }));
    EXPECT_TRUE(parked_timers(shop, schedule_name<Book>()).empty());
    EXPECT_NE(log.text().find("Return on 'book-b', scheduled for "), std::string::npos) << log.text();
}

TEST_F(Scheduled, a_command_that_the_program_does_not_know_is_set_aside_and_says_so) {
    run_scheduled<Book, Lend>(shop);
    schedule<Book>(shop, "b", Return{}, in(0ms));
    ASSERT_TRUE(soon([&] { return !parked_timers(shop, schedule_name<Book>()).empty(); }));
    EXPECT_NE(parked_timers(shop, schedule_name<Book>()).front().error.find("Return"), std::string::npos);
}

TEST_F(Scheduled, nothing_is_scheduled_by_a_transaction_that_does_not_commit) {
    const Outcome rejected = shop.transact([&](Transaction& tx) {
        schedule<Book>(tx, "b", Lend{1}, in(0ms));
        tx.execute<Book>("c", Return{});
    });
    EXPECT_FALSE(rejected);
    schedule<Book>(shop, "d", Lend{1}, in(0ms));
    run_scheduled<Book, Lend>(shop);
    ASSERT_TRUE(soon([&] { return shop.load<Book>("d").version == 1; }));
    EXPECT_EQ(shop.load<Book>("b").version, 0);
}

}  // namespace
}  // namespace varve
