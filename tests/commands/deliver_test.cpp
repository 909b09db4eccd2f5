#include "commands/parked_retry.h"
#include "commands/parked_row.h"
#include "support/delivering.h"
#include "support/one_by_one_store.h"
#include "support/unordered_store.h"

#include <varve/commands/parked_stream.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST_F(Delivering, each_effect_arrives_in_the_order_of_its_stream) {
    send("a", {"a1", "a2"});
    send("b", {"b1"});
    send("a", {"a3"});
    shop.transact([](Transaction& tx) { tx.effect(Call{"nobody"}); }).value();
    shop.transact([](Transaction& tx) { tx.effect(Mail{"alone"}); }).value();
    detail::Follower follower{shop, idle, consumer()};
    follower.turn({});
    EXPECT_EQ(receiver.got, (Texts{"a1", "a2", "b1", "a3", "alone"}));
    follower.end();

    detail::Follower heir{shop, idle, consumer()};
    send("a", {"a4"});
    heir.turn({});
    EXPECT_EQ(receiver.got.back(), "a4");
    EXPECT_EQ(receiver.asked, 6u) << "what was delivered is not delivered again";
}

TEST_F(Delivering, what_fails_while_others_get_through_is_aside_with_what_is_behind_it) {
    receiver.refuses = {"a1"};
    send("a", {"a1", "a2"});
    send("b", {"b1"});
    send("a", {"a3"});
    send("c", {"c1"});
    detail::Follower follower{shop, idle, consumer()};
    follower.turn({});
    EXPECT_EQ(receiver.got, (Texts{"b1", "c1"}));
    ASSERT_EQ(follower.parked().size(), 1u);
    EXPECT_EQ(follower.parked().front().stream, "account-a");
    EXPECT_EQ(follower.parked().front().error, "the door is closed");
    EXPECT_EQ(log.text().find("was not delivered") != std::string::npos, true) << log.text();

    send("a", {"a4"});
    receiver.refuses.clear();
    pass_time(follower, 2s);
    EXPECT_EQ(receiver.got, (Texts{"b1", "c1", "a1", "a2", "a3", "a4"}));
    EXPECT_TRUE(follower.parked().empty());
    EXPECT_EQ(follower.status().parked, 0);
}

TEST_F(Delivering, a_receiver_that_is_away_for_a_day_gets_everything_in_order_once_it_is_back) {
    receiver.is_down = true;
    for (const char* account : {"a", "b", "c", "d", "e"}) send(account, {std::string{account} + "1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 24h);
    EXPECT_TRUE(follower.parked().empty()) << "none of them is to blame";
    EXPECT_GT(receiver.asked, 100u);
    EXPECT_LT(receiver.asked, 5000u) << "it is left in peace";
    for (const char* account : {"a", "b"}) send(account, {std::string{account} + "2"});
    receiver.is_down = false;
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got.size(), 7u);
    EXPECT_LT(receiver.place_of("a1"), receiver.place_of("a2"));
    EXPECT_LT(receiver.place_of("b1"), receiver.place_of("b2"));
}

TEST_F(Delivering, an_effect_that_alone_fails_is_told_from_a_receiver_that_is_away_by_what_comes_later) {
    receiver.refuses = {"a1"};
    send("a", {"a1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 10s);
    EXPECT_TRUE(follower.parked().empty()) << "nobody knows yet whose fault it is";
    send("b", {"b1"});
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got, Texts{"b1"});
    EXPECT_EQ(follower.parked().size(), 1u);
}

TEST_F(Delivering, what_the_receiver_will_never_take_stays_aside_until_somebody_takes_it_up) {
    receiver.never_takes = {"a1"};
    send("a", {"a1", "a2"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1h);
    EXPECT_EQ(receiver.asked, 1u);
    EXPECT_EQ(follower.parked().size(), 1u);
    EXPECT_EQ(follower.retry_parked(), 0u);
    EXPECT_EQ(receiver.asked, 2u);
    receiver.never_takes.clear();
    EXPECT_EQ(follower.retry_parked(), 1u);
    send("a", {"a3"});
    pass_time(follower, 1s);
    EXPECT_EQ(receiver.got, (Texts{"a1", "a2", "a3"}));
}

TEST_F(Delivering, an_effect_is_given_up_after_so_many_attempts_while_others_get_through) {
    how.attempts_max = 3;
    receiver.refuses = {"a1"};
    send("a", {"a1"});
    detail::Follower follower{shop, idle, consumer()};
    for (int i = 0; i < 100; ++i) {
        send("b", {"b"});
        pass_time(follower, 1min);
    }
    EXPECT_EQ(receiver.got.size(), 100u);
    EXPECT_LE(receiver.asked, 100u + how.attempts_max + 10) << "what failed while nobody got through does not count";
    ASSERT_EQ(follower.parked().size(), 1u);
    receiver.refuses.clear();
    pass_time(follower, 1h);
    EXPECT_EQ(receiver.got.size(), 100u) << "it is not tried any more by itself";
    EXPECT_EQ(follower.retry_parked(), 1u);
    EXPECT_EQ(receiver.got.back(), "a1");
}

TEST_F(Delivering, what_a_slot_has_delivered_in_part_is_not_delivered_again_by_who_goes_on) {
    receiver.refuses = {"a2"};
    send("a", {"a1", "a2", "a3"});
    send("b", {"b1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1min);
    EXPECT_EQ(receiver.got, (Texts{"a1", "b1"}));
    receiver.refuses.clear();
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got, (Texts{"a1", "b1", "a2", "a3"}));
}

TEST_F(Delivering, a_receiver_that_asks_for_a_pause_gets_it) {
    receiver.is_down = true;
    receiver.asks_for = 1h;
    send("a", {"a1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 59min);
    EXPECT_EQ(receiver.asked, 1u);
    pass_time(follower, 2min);
    EXPECT_EQ(receiver.asked, 2u);
    EXPECT_EQ(receiver.attempts, (std::vector<unsigned>{1, 2}));
}

TEST_F(Delivering, goes_no_faster_than_it_is_told) {
    how.per_second_max = 20;
    Texts all;
    for (int i = 0; i < 100; ++i) all.push_back("a" + std::to_string(i));
    for (const std::string& one : all) send("a", {one});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1s);
    EXPECT_GE(receiver.got.size(), 15u);
    EXPECT_LE(receiver.got.size(), 25u);
    pass_time(follower, 5s);
    EXPECT_EQ(receiver.got, all);
}

TEST_F(Delivering, with_more_streams_aside_than_allowed_it_waits) {
    how.parked_max = 2;
    receiver.never_takes = {"a1", "b1", "c1"};
    for (const char* account : {"a", "b", "c", "d"}) send(account, {std::string{account} + "1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1h);
    EXPECT_EQ(follower.parked().size(), 2u);
    EXPECT_LE(receiver.got.size(), 1u);
    receiver.never_takes.clear();
    EXPECT_EQ(follower.retry_parked(), 2u);
    pass_time(follower, 1h);
    std::ranges::sort(receiver.got);
    EXPECT_EQ(receiver.got, (Texts{"a1", "b1", "c1", "d1"}));
}

TEST_F(Delivering, a_stream_that_fails_for_longer_than_can_be_seen_holds_up_no_other_one) {
    receiver.refuses = {"a"};
    for (int i = 0; i < 600; ++i) send("a", {"a"});
    send("b", {"b"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1min);
    EXPECT_EQ(receiver.got, Texts{"b"});
    receiver.refuses.clear();
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got.size(), 601u);
}

TEST_F(Delivering, three_streams_that_fail_at_the_front_hold_up_no_other_one) {
    receiver.refuses = {"a", "b", "c"};
    for (const char* account : {"a", "b", "c", "d", "e"}) send(account, {account});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got.size(), 2u);
    EXPECT_LT(receiver.place_of("d"), 2u);
    EXPECT_LT(receiver.place_of("e"), 2u);
    EXPECT_EQ(follower.parked().size(), 3u);
}

TEST_F(Delivering, more_streams_that_fail_than_can_be_seen_hold_up_no_other_one_and_none_overtakes_its_own) {
    how.per_second_max = 100;  // as many slots are read at a time
    how.poll_interval = 1min;
    for (int i = 0; i < 120; ++i) {
        send("bad" + std::to_string(i), {"bad"});
        if (i == 110) send("good", {"1"});
    }
    send("good", {"2", "3"});
    receiver.refuses = {"bad"};
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 100h);
    EXPECT_EQ(receiver.got, (Texts{"1", "2", "3"}));
    EXPECT_GT(follower.parked().size(), 0u);
    receiver.refuses.clear();
    pass_time(follower, 100h);
    EXPECT_EQ(receiver.got.size(), 123u);
    EXPECT_TRUE(follower.parked().empty());
}

TEST_F(Delivering, a_receiver_that_asks_for_a_pause_now_and_then_is_left_alone_so_long_and_gets_everything) {
    Texts all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(std::to_string(i));
        send("s" + all.back(), {all.back()});
    }
    receiver.asks_for = 1min;
    receiver.busy_each = 3;
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 30s);
    EXPECT_EQ(receiver.asked, 3u);
    pass_time(follower, 10h);
    std::ranges::sort(receiver.got);
    std::ranges::sort(all);
    EXPECT_EQ(receiver.got, all);
    EXPECT_TRUE(follower.parked().empty());
}

TEST_F(Delivering, one_stream_for_which_the_receiver_always_asks_for_a_pause_holds_up_no_other_one_for_ever) {
    receiver.asks_for = 1min;
    receiver.busy_for = {"a1"};
    send("a", {"a1"});
    for (int i = 0; i < 10; ++i) send("b", {"b"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 10h);
    EXPECT_EQ(receiver.got.size(), 10u);
    EXPECT_EQ(follower.parked().size(), 1u);
}

TEST_F(Delivering, what_a_stream_that_was_aside_has_in_the_window_is_delivered_when_it_is_back) {
    how.per_second_max = 10;
    receiver.refuses = {"a1"};
    send("a", {"a1"});
    for (int i = 0; i < 50; ++i) send("b", {"b"});
    send("a", {"a2"});
    for (int i = 0; i < 5; ++i) send("c", {"c"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 300ms);
    EXPECT_EQ(follower.parked().size(), 1u);
    receiver.refuses.clear();
    pass_time(follower, 1min);
    EXPECT_EQ(receiver.got.size(), 57u);
    EXPECT_LT(receiver.place_of("a1"), receiver.place_of("a2"));
}

TEST_F(Delivering, a_rare_effect_that_fails_holds_up_the_next_one_no_longer_than_a_few_passes) {
    receiver.refuses = {"a"};
    send("a", {"a"});
    for (int i = 0; i < 3000; ++i) shop.execute<account::Account>("c", account::Deposit{1}).value();
    send("b", {"b"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 5s);
    EXPECT_EQ(receiver.got, Texts{"b"});
}

TEST_F(Delivering, what_is_dropped_while_it_is_tried_stays_dropped) {
    receiver.refuses = {"a1"};
    send("a", {"a1", "a2"});
    send("b", {"b1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 100ms);
    ASSERT_EQ(follower.parked().size(), 1u);
    const std::string id = follower.parked().front().id;
    Application other{store, options()};
    detail::Follower elsewhere{other, idle, consumer()};
    receiver.meanwhile = [&] { EXPECT_TRUE(elsewhere.drop_parked(id)); };
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got, (Texts{"b1", "a2"}));
    EXPECT_TRUE(follower.parked().empty());
}

TEST_F(Delivering, who_is_stopped_within_a_stream_that_was_aside_is_not_asked_once_more) {
    receiver.refuses = {"a1"};
    send("a", {"a1", "a2", "a3"});
    send("b", {"b1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 100ms);
    receiver.refuses.clear();
    std::stop_source stop;
    receiver.meanwhile = [&] { stop.request_stop(); };
    clock.advance(10min);
    follower.turn(stop.get_token());
    EXPECT_EQ(receiver.got, (Texts{"b1", "a1"}));
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got, (Texts{"b1", "a1", "a2", "a3"}));
}

TEST_F(Delivering, what_was_aside_goes_no_faster_than_it_is_told_either) {
    how.per_second_max = 10;
    receiver.refuses = {"0"};
    Texts all;
    for (int i = 0; i < 100; ++i) all.push_back(std::to_string(i));
    send("a", all);
    send("b", {"b"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 10s);
    ASSERT_EQ(receiver.got, Texts{"b"});
    receiver.refuses.clear();
    for (int second = 0; second < 60; ++second) {
        const std::size_t before = receiver.asked;
        pass_time(follower, 1s);
        EXPECT_LE(receiver.asked - before, 12u);
    }
    ASSERT_EQ(receiver.got.size(), 101u);
    EXPECT_TRUE(std::equal(all.begin(), all.end(), receiver.got.begin() + 1));
}

TEST_F(Delivering, an_effect_that_is_dropped_is_never_tried_again_and_those_behind_it_arrive) {
    receiver.never_takes = {"a2"};
    receiver.refuses = {"a3"};
    send("a", {"a1", "a2", "a3", "a4"});
    send("a", {"a5"});
    const auto dropping = std::make_unique<detail::Follower>(shop, idle, consumer());
    pass_time(*dropping, 1s);
    const std::vector<ParkedStream> aside = dropping->parked();
    ASSERT_EQ(aside.size(), 1u);
    EXPECT_TRUE(aside.front().given_up);
    EXPECT_EQ(aside.front().error, "nobody lives there");
    EXPECT_FALSE(dropping->drop_parked("another"));
    EXPECT_TRUE(dropping->drop_parked(aside.front().id));
    EXPECT_FALSE(dropping->drop_parked(aside.front().id));
    EXPECT_EQ(dropping->parked().front().error, "the door is closed") << "now it is the one behind it";
    EXPECT_FALSE(dropping->parked().front().given_up);
    dropping->end();

    receiver.refuses.clear();
    const std::size_t asked = receiver.asked;
    detail::Follower heir{shop, idle, consumer()};
    pass_time(heir, 1min);
    EXPECT_EQ(receiver.got, (Texts{"a1", "a3", "a4", "a5"}));
    EXPECT_EQ(receiver.asked, asked + 3) << "what was delivered, or dropped, is not tried again";
    EXPECT_TRUE(heir.parked().empty());
}

TEST_F(Delivering, what_another_process_has_taken_up_goes_on_here) {
    receiver.never_takes = {"a1"};
    send("a", {"a1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1s);
    ASSERT_EQ(follower.parked().size(), 1u);
    receiver.never_takes.clear();
    {
        Application other{store, options()};
        detail::Follower elsewhere{other, idle, consumer()};
        EXPECT_EQ(elsewhere.retry_parked(), 1u);
    }
    send("a", {"a2"});
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got, (Texts{"a1", "a2"}));
    EXPECT_TRUE(follower.parked().empty());
}

TEST_F(Delivering, a_stream_that_is_taken_up_after_long_goes_on_where_it_was_interrupted) {
    receiver.refuses = {"a1"};
    send("a", {"a1"});
    for (int i = 0; i < 1200; ++i) send("b", {"b" + std::to_string(i)});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1s);
    ASSERT_EQ(follower.parked().size(), 1u);
    follower.end();

    const detail::Consumer how_it_is = consumer();
    const auto take = [](std::span<const RecordedEvent>) { return true; };
    int steps = 0;
    detail::ParkedRetry retry{shop, how_it_is, take, "account-a"};
    EXPECT_FALSE(retry.run([&] { return ++steps <= 4; })) << "there is more to read";
    const auto row = shop.rows<detail::ParkedRow>().get({delivery_name<Mail>(), "account-a"});
    ASSERT_TRUE(row);
    EXPECT_GE(row->position, 500) << "else who goes on would read all of that again";
    detail::ParkedRetry rest{shop, how_it_is, take, "account-a"};
    EXPECT_TRUE(rest.run([] { return true; }));
}

TEST_F(Delivering, a_receiver_that_is_away_is_told_of_once_and_once_when_it_is_back) {
    receiver.is_down = true;
    for (const char* account : {"a", "b", "c", "d"}) send(account, {account});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1h);
    receiver.is_down = false;
    pass_time(follower, 10min);
    EXPECT_EQ(receiver.got.size(), 4u);
    EXPECT_EQ(log.lines(), (Texts{"effects 'Mail' do not get through, and wait until one does: the door is closed",
                                  "effects 'Mail' get through again"}));
}

TEST_F(DyingDelivery, arrives_in_order_whoever_dies_at_whatever_request) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        while (run(open("memory:"), at, applies)) ++at;
        EXPECT_GT(at, 20);
    }
}

TEST_F(DyingDelivery, arrives_in_order_on_a_store_that_writes_one_item_at_a_time) {
    for (const std::uint64_t applies : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        int at = 1;
        while (run(std::make_shared<OneByOneStore>(open("memory:")), at, applies)) ++at;
        EXPECT_GT(at, 20);
    }
}

TEST_F(Delivering, an_effect_that_cannot_be_read_stays_aside_and_says_why) {
    const store::Write write{
        {"events", "$tx-odd", std::int64_t{1}},
        store::Put{{{"state", "committed"}, {"write_id", "odd"}, {"effects", R"([{"type":"Mail","data":{"to":5}}])"}}}};
    ASSERT_TRUE(std::holds_alternative<store::Applied>(store->write({&write, 1}).front()));
    send("a", {"a1"});
    detail::Follower follower{shop, idle, consumer()};
    pass_time(follower, 1min);
    EXPECT_EQ(receiver.got, Texts{"a1"});
    ASSERT_EQ(follower.parked().size(), 1u);
    EXPECT_NE(follower.parked().front().error.find("$.to"), std::string::npos) << follower.parked().front().error;
}

/// What a handler on other threads has got.
class Got {
  public:
    auto handler() {
        return [this](const Mail& mail) {
            const std::lock_guard lock{mutex_};
            all_.push_back(mail.to);
        };
    }
    Texts sorted() const {
        const std::lock_guard lock{mutex_};
        Texts all = all_;
        std::ranges::sort(all);
        return all;
    }

  private:
    mutable std::mutex mutex_;
    Texts all_;
};

TEST(Deliver, does_what_effects_say_in_the_background) {
    Got got;
    Application shop{open("memory:")};
    deliver<Mail>(shop, got.handler());
    const Receipt receipt = shop.transact([](Transaction& tx) { tx.effect(Mail{"ann"}); }).value();
    ASSERT_TRUE(shop.wait_for(delivery_name<Mail>(), receipt, 100s));
    EXPECT_EQ(got.sorted(), Texts{"ann"});
    EXPECT_EQ(shop.followers().front().name, "$deliver-Mail");
    EXPECT_THROW(deliver<Mail>(shop, got.handler()), ConfigError);
}

TEST(Deliver, reaches_effects_without_events_where_the_store_keeps_no_order) {
    Got got;
    Application shop{std::make_shared<UnorderedStore>(open("memory:"))};
    deliver<Mail>(shop, got.handler());
    const Receipt alone = shop.transact([](Transaction& tx) { tx.effect(Mail{"ann"}); }).value();
    ASSERT_TRUE(shop.wait_for(delivery_name<Mail>(), alone, 100s));
    EXPECT_EQ(got.sorted(), Texts{"ann"});
    const Receipt under_an_id =
        shop.transact([](Transaction& tx) { tx.effect(Mail{"bob"}); }, {.command_id = "c-1"}).value();
    ASSERT_TRUE(shop.wait_for(delivery_name<Mail>(), under_an_id, 100s));
    EXPECT_EQ(got.sorted(), (Texts{"ann", "bob"}));
}

TEST(Deliver, in_several_parts_reaches_the_effects_of_all_streams) {
    Got got;
    Application shop{open("memory:")};
    deliver<Mail>(shop, got.handler(), {.partitions = 3});
    Texts expected;
    for (int i = 10; i < 30; ++i) {
        expected.push_back(std::to_string(i));
        shop.transact([&](Transaction& tx) {
                tx.execute<account::Account>(expected.back(), account::Deposit{1});
                tx.effect(Mail{expected.back()});
            })
            .value();
    }
    ASSERT_TRUE(shop.wait_for(delivery_name<Mail>(), Receipt{}, 100s));
    EXPECT_EQ(got.sorted(), expected);
    EXPECT_EQ(shop.followers().size(), 3u);
}

TEST(Deliver, tells_of_a_stream_that_is_aside_and_drops_what_shall_never_be_delivered) {
    Application shop{open("memory:")};
    Got got;
    deliver<Mail>(shop, [take = got.handler()](const Mail& mail) mutable {
        if (mail.to == "nowhere") throw Undeliverable("nobody lives there");
        take(mail);
    });
    const auto send = [&](const char* to) {
        return shop
            .transact([&](Transaction& tx) {
                tx.execute<account::Account>("a", account::Deposit{1});
                tx.effect(Mail{to});
            })
            .value();
    };
    send("nowhere");
    EXPECT_FALSE(shop.wait_for(delivery_name<Mail>(), send("ann"), 100s)) << "it is behind the one that failed";
    const std::vector<ParkedStream> aside = shop.parked(delivery_name<Mail>());
    ASSERT_EQ(aside.size(), 1u);
    EXPECT_EQ(aside.front().stream, "account-a");
    EXPECT_TRUE(drop_effect<Mail>(shop, aside.front().id));
    EXPECT_EQ(got.sorted(), Texts{"ann"});
    EXPECT_FALSE(drop_effect<Mail>(shop, aside.front().id));
    EXPECT_THROW(drop_effect<Call>(shop, "any"), InvalidError);
}

TEST(Deliver, refuses_what_cannot_work) {
    Application shop{open("memory:")};
    const auto refusal = [&](const DeliverOptions& options) {
        try {
            deliver<Mail>(
                shop, [](const Mail&) {}, options);
        } catch (const ConfigError& error) {
            return std::string{error.what()};
        }
        return std::string{"none"};
    };
    EXPECT_NE(refusal({.attempts_max = 0}).find("DeliverOptions::attempts_max is 0"), std::string::npos);
    EXPECT_NE(refusal({.retry_first = 0s}).find("DeliverOptions::retry_first is 0"), std::string::npos);
    EXPECT_NE(refusal({.retry_first = 2s, .retry_max = 1s}).find("DeliverOptions::retry_max is 1 s"),
              std::string::npos);
    EXPECT_NE(refusal({.partitions = 65}).find("65"), std::string::npos);
    EXPECT_NE(refusal({.parked_max = 0}).find("parked_max is 0"), std::string::npos);
}

}  // namespace
}  // namespace varve
