#include "adapters/on_servers/moved_store.h"
#include "each_server.h"
#include "support/account.h"
#include "support/checkout.h"
#include "support/lending.h"

#include <varve/commands/delivery.h>
#include <varve/commands/follower_status.h>
#include <varve/events/event_store.h>
#include <varve/processes/parked_timer.h>
#include <varve/store/open.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace varve::dynamodb {
namespace {

using namespace account;
using namespace std::chrono_literals;

class Following : public EachServer {};
INSTANTIATE_TEST_SUITE_P(Each, Following, each_kind(), name_of_kind);

/// Where no order of changes is kept, events are put in order by one of the applications; each announces in the shards
/// that it knows.
TEST_P(Following, two_applications_take_each_event_of_what_both_write_once_and_in_the_order_of_its_stream) {
    if (!server_) return;
    constexpr int rounds = 40;
    const ApplicationOptions options{.retry = {.time_max = 100s}, .locks = {.time_to_live = 60s}};
    Application first{varve::open(server_->url("bank")), options};
    ApplicationOptions in_more_shards = options;
    in_more_shards.feed_shards = 8;
    Application second{varve::open(server_->url("bank")), in_more_shards};
    std::mutex mutex;
    std::map<std::string, std::vector<Version>> seen;
    const auto watch = [&](std::span<const RecordedEvent> events) {
        const std::lock_guard lock{mutex};
        for (const RecordedEvent& event : events) seen[event.stream].push_back(event.version);
    };
    for (Application* one : {&first, &second}) {
        one->subscribe("watch", watch);
        one->follow<Account>(ProjectBalance{});
    }
    {
        std::vector<std::jthread> writers;
        for (int writer = 0; writer < 2; ++writer) {
            writers.emplace_back([&, writer] {
                Application& one = writer == 0 ? first : second;
                for (int i = 0; i < rounds; ++i) {
                    one.transact([&](Transaction& tx) {
                           tx.execute<Account>(std::to_string(i % 3), Deposit{1});
                           if (i % 2 == 0) tx.execute<Account>("both", Deposit{1});
                       })
                        .value();
                }
            });
        }
    }
    for (Application* one : {&first, &second}) {
        ASSERT_TRUE(one->wait_for("watch", {}, 60s)) << one->followers().front().error;
        ASSERT_TRUE(one->wait_for<ProjectBalance>({}, 60s));
    }
    const std::lock_guard lock{mutex};
    for (const char* id : {"0", "1", "2", "both"}) {
        std::vector<Version> stored;
        for (const RecordedEvent& event : first.history<Account>(id).events) stored.push_back(event.version);
        EXPECT_EQ(seen["account-" + std::string{id}], stored);
        EXPECT_EQ(second.rows<Balance>().get(id)->cents, first.load<Account>(id).state.balance);
    }
}

struct Mail {
    std::string to;
};

/// Each with an event, in the stream of its account, or alone, in a stream of its own.
TEST_P(Following, effects_arrive_in_the_order_of_their_stream_though_who_delivers_ends_and_the_receiver_is_busy) {
    if (!server_) return;
    constexpr int rounds = 20;
    const ApplicationOptions options{.retry = {.time_max = 100s}, .locks = {.time_to_live = 60s}};
    std::mutex mutex;
    std::map<std::string, std::vector<std::string>> got;  // firsts, by account
    int asked = 0;
    const auto take = [&](const Mail& mail) {
        const std::lock_guard lock{mutex};
        if (++asked % 5 == 0) throw std::runtime_error("busy");
        std::vector<std::string>& firsts = got[mail.to.substr(0, 1)];
        if (std::ranges::find(firsts, mail.to) == firsts.end()) firsts.push_back(mail.to);
    };
    const DeliverOptions how{.attempts_max = 1'000'000, .retry_first = 10ms, .retry_max = 100ms};
    Application second{varve::open(server_->url("bank")), options};
    std::map<std::string, std::vector<std::string>> sent;
    {
        Application first{varve::open(server_->url("bank")), options};
        deliver<Mail>(first, take, how);
        deliver<Mail>(second, take, how);
        for (int i = 0; i < rounds; ++i) {
            const std::string account = i % 2 == 0 ? "a" : "b";
            const std::string to = account + std::to_string(i);
            second
                .transact([&](Transaction& tx) {
                    tx.execute<Account>(account, Deposit{1});
                    tx.effect(Mail{to});
                })
                .value();
            sent[account].push_back(to);
        }
    }
    second.transact([&](Transaction& tx) { tx.effect(Mail{"c"}); }).value();
    sent["c"] = {"c"};
    const auto all_of_it = [&] {
        const std::lock_guard lock{mutex};
        return got == sent;
    };
    for (const auto until = std::chrono::steady_clock::now() + 100s;
         !all_of_it() && std::chrono::steady_clock::now() < until;)
        std::this_thread::sleep_for(10ms);
    const std::lock_guard lock{mutex};
    EXPECT_EQ(got, sent);
}

/// Each order needs two of what there is, which is enough for half of them.
TEST_P(Following, processes_react_once_to_each_event_and_their_timers_come_back_though_who_runs_them_ends) {
    using namespace checkout;
    using namespace lending;
    if (!server_) return;
    constexpr int rounds = 10;
    const ApplicationOptions options{.retry = {.time_max = 100s}, .locks = {.time_to_live = 60s}};
    Application second{varve::open(server_->url("shop")), options};
    second.execute<Stock>("p", Fill{rounds}).value();
    {
        Application first{varve::open(server_->url("shop")), options};
        run<Checkout>(first);
        run<Checkout>(second);
        run<Reminder>(first);
        second.execute<Book>("early", Lend{0}).value();
        for (int i = 0; i < rounds; ++i) second.execute<Purchase>("o" + std::to_string(i), Place{"p", 2}).value();
    }
    run<Reminder>(second);
    second.execute<Book>("late", Lend{0}).value();
    ASSERT_TRUE(second.wait_for(process_name<Checkout>(), {}, 100s)) << second.followers().front().error;
    ASSERT_TRUE(second.wait_for(process_name<Reminder>(), {}, 100s)) << second.followers().back().error;

    int done = 0;
    for (int i = 0; i < rounds; ++i) {
        const std::string id = "o" + std::to_string(i);
        const Loaded<Checkout> own = second.load<Checkout>(id);
        EXPECT_EQ(own.version, 1) << id;
        EXPECT_EQ(own.state.started == 1, second.load<Purchase>(id).state.is_open) << id;
        EXPECT_EQ(second.events().effects("checkout-" + id, 1).size(), own.state.started == 1 ? 1u : 0u) << id;
        done += static_cast<int>(own.state.started);
    }
    EXPECT_EQ(done, rounds / 2);
    EXPECT_EQ(second.load<Stock>("p").state.reserved, rounds);

    for (const char* book : {"early", "late"}) {
        const auto reminded = [&] { return second.load<Reminder>(book).state.reminded.size(); };
        for (const auto until = std::chrono::steady_clock::now() + 100s;
             reminded() == 0 && std::chrono::steady_clock::now() < until;)
            std::this_thread::sleep_for(10ms);
        EXPECT_EQ(reminded(), 1u) << book;
        EXPECT_EQ(second.history<Reminder>(book).events.size(), 3u)
            << book << ": it has set one, was reminded, and set the next";
    }
    EXPECT_TRUE(parked_timers(second, process_name<Reminder>()).empty());
}

TEST_P(Following, a_store_moves_here_and_on_and_followers_go_on_where_they_were) {
    if (!server_) return;
    on_servers::expect_a_store_to_move_to(varve::open(server_->url("moved")));
}

}  // namespace
}  // namespace varve::dynamodb
