#include "support/account.h"
#include "support/hooked_store.h"

#include <varve/commands/follower_status.h>
#include <varve/telemetry/metric.h>
#include <varve/testing/manual_world.h>

#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace account;
using namespace std::chrono_literals;
using telemetry::HistogramValue;
using telemetry::Metric;
using Labels = decltype(telemetry::Sample::labels);

constexpr double missing = -1;

struct Telemetry : ::testing::Test, testing::ManualWorld {
    std::shared_ptr<HookedStore> store = std::make_shared<HookedStore>(open("memory:"));
    Application bank{store, options({.retry = RetryPolicy::once()})};

    /// The sample of the metric that has these labels and no others.
    std::optional<telemetry::Sample> sample(const std::string& name, const Labels& labels = {}) {
        for (const Metric& metric : bank.telemetry()) {
            if (metric.name != name) continue;
            for (const telemetry::Sample& one : metric.samples) {
                if (one.labels == labels) return one;
            }
        }
        return std::nullopt;
    }
    double value(const std::string& name, const Labels& labels = {}) {
        const auto found = sample(name, labels);
        return found ? std::get<double>(found->value) : missing;
    }
    HistogramValue histogram(const std::string& name, const Labels& labels = {}) {
        const auto found = sample(name, labels);
        return found ? std::get<HistogramValue>(found->value) : HistogramValue{};
    }
    double commands(const std::string& aggregate, const std::string& outcome) {
        return value("varve_commands_total", {{"aggregate", aggregate}, {"outcome", outcome}});
    }
};

TEST_F(Telemetry, counts_commands_by_their_aggregate_and_by_how_they_ended) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    ASSERT_TRUE(bank.execute<Account>("bob", Deposit{5}, {.command_id = "one"}));
    ASSERT_TRUE(bank.execute<Account>("bob", Deposit{5}, {.command_id = "one"}));
    ASSERT_FALSE(bank.execute<Account>("alice", Withdraw{6}));
    std::future<Outcome> later_one = bank.submit<Account>("alice", Deposit{1});
    later.drain();
    ASSERT_TRUE(later_one.get());
    ASSERT_TRUE(bank.transact([](Transaction& tx) { tx.execute<Account>("alice", Withdraw{1}); }));
    EXPECT_THROW((void)bank.transact([](Transaction&) { throw std::runtime_error{"mine"}; }), std::runtime_error);
    store->after_write = [](std::span<const store::Write>, std::vector<store::WriteAnswer>& answers) {
        for (store::WriteAnswer& answer : answers) answer = Failure{ErrorKind::unavailable, false, "gone"};
    };
    store->hold_back_writes = true;
    EXPECT_THROW((void)bank.execute<Account>("alice", Deposit{1}), UnavailableError);

    EXPECT_EQ(commands("account", "committed"), 3);
    EXPECT_EQ(commands("account", "repeated"), 1);
    EXPECT_EQ(commands("account", "rejected"), 1);
    EXPECT_EQ(commands("account", "unavailable"), 1);
    EXPECT_EQ(commands("account", "conflict"), 0);
    EXPECT_EQ(commands("*", "committed"), 1);
    EXPECT_EQ(commands("*", "failed"), 1);
    EXPECT_EQ(value("varve_commands_committed_total", {{"aggregate", "account"}, {"rung", "at_once"}}), 3);
    EXPECT_EQ(histogram("varve_command_duration_seconds", {{"aggregate", "account"}}).count(), 6U);
    EXPECT_EQ(histogram("varve_command_duration_seconds", {{"aggregate", "*"}}).count(), 2U);
}

TEST_F(Telemetry, tells_a_command_that_lost_from_one_that_nobody_knows_of) {
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    Application other{store, options()};
    bool is_another = false;  // who writes first, again and again
    store->before_write = [&](std::span<const store::Write>) {
        if (std::exchange(is_another, true)) return;
        other.execute<Account>("alice", Deposit{1}).value();
        is_another = false;
    };
    EXPECT_THROW((void)bank.execute<Account>("alice", Deposit{5}), ConflictError);
    store->before_write = [](std::span<const store::Write>) {};
    store->after_write = [&](std::span<const store::Write>, std::vector<store::WriteAnswer>& answers) {
        for (store::WriteAnswer& answer : answers) answer = Failure{ErrorKind::unavailable, true, "no answer"};
        store->before_read = [] { throw UnavailableError{"no answer"}; };
    };
    EXPECT_THROW((void)bank.execute<Account>("alice", Deposit{5}), InDoubtError);
    EXPECT_EQ(commands("account", "conflict"), 1);
    EXPECT_EQ(commands("account", "in_doubt"), 1);
    EXPECT_GE(value("varve_attempts_total", {{"result", "conflict"}}), 1);
    EXPECT_GT(value("varve_store_refused_writes_total"), 0);
    EXPECT_GT(value("varve_store_failures_total", {{"request", "write"}, {"kind", "unavailable"}}), 0);
}

TEST_F(Telemetry, counts_a_command_that_met_a_full_lane) {
    Application small{store, options({.lanes = {.queue_max = 1, .when_full = LaneOptions::WhenFull::refuse}})};
    std::future<Outcome> first = small.submit<Account>("alice", Deposit{1});
    EXPECT_THROW((void)small.submit<Account>("alice", Deposit{1}), OverloadedError);
    later.drain();
    ASSERT_TRUE(first.get());
    double refused = 0;
    for (const Metric& metric : small.telemetry()) {
        for (const telemetry::Sample& one : metric.samples) {
            if (one.labels == Labels{{"aggregate", "account"}, {"outcome", "overloaded"}})
                refused += std::get<double>(one.value);
        }
    }
    EXPECT_EQ(refused, 1);
}

TEST_F(Telemetry, measures_each_attempts_decision_and_commit_by_the_steady_clock) {
    store->before_write = [&](std::span<const store::Write>) {
        clock.advance(30ms);
        clock.jump(-1h);
    };
    ASSERT_TRUE(bank.transact([&](Transaction& tx) {
        tx.execute<Account>("alice", Deposit{5});
        clock.advance(5ms);
        clock.jump(1h);
    }));
    const HistogramValue decided = histogram("varve_decide_duration_seconds");
    const HistogramValue committed = histogram("varve_commit_duration_seconds");
    EXPECT_EQ(committed.count(), 1U);
    EXPECT_EQ(decided.count(), 1U);
    EXPECT_NEAR(decided.sum, 0.005, 1e-9);
    EXPECT_NEAR(committed.sum, 0.030, 1e-9);
    EXPECT_NEAR(histogram("varve_command_duration_seconds", {{"aggregate", "*"}}).sum, 0.035, 1e-9);
}

TEST_F(Telemetry, of_a_fast_store_has_one_request_in_sixteen_for_all_of_them) {
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    const double asked = value("varve_store_requests_total", {{"request", "write"}});
    const HistogramValue timed = histogram("varve_store_request_duration_seconds", {{"request", "write"}});
    EXPECT_GE(asked, 1'000);
    EXPECT_NEAR(static_cast<double>(timed.count()), asked, 16);
    // As soon as one is slow, each is timed.
    store->before_write = [&](std::span<const store::Write>) { clock.advance(1ms); };
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(bank.execute<Account>("alice", Deposit{1}));
    const HistogramValue slow = histogram("varve_store_request_duration_seconds", {{"request", "write"}});
    EXPECT_NEAR(slow.sum, 0.1, 0.016);
}

TEST_F(Telemetry, times_each_kind_of_request_and_those_of_threads_that_make_few) {
    Application uncached{store, options({.cache_bytes_max = 0})};
    for (int i = 0; i < 20; ++i) {
        std::jthread{[&] {
            for (int k = 0; k < 5; ++k) uncached.execute<Account>("alice", Deposit{1}).value();
        }};
    }
    std::map<std::string, std::uint64_t> asked;
    std::map<std::string, std::uint64_t> timed;
    for (const Metric& metric : uncached.telemetry()) {
        for (const telemetry::Sample& one : metric.samples) {
            if (metric.name == "varve_store_requests_total")
                asked[one.labels.front().second] = static_cast<std::uint64_t>(std::get<double>(one.value));
            if (metric.name == "varve_store_request_duration_seconds")
                timed[one.labels.front().second] = std::get<HistogramValue>(one.value).count();
        }
    }
    EXPECT_GE(asked.at("write"), 100U);
    for (const auto& [request, count] : asked)
        EXPECT_NEAR(static_cast<double>(timed.at(request)), static_cast<double>(count), 16) << request;
}

TEST_F(Telemetry, counts_the_frameworks_own_transactions_apart) {
    Application follower{store, {.sweep_interval = 10ms}};
    follower.follow<Account>(ProjectBalance{});
    const Receipt receipt = follower.execute<Account>("alice", Deposit{5}).value();
    ASSERT_TRUE(follower.wait_for<ProjectBalance>(receipt, 1h));
    double of_users = 0;
    double own = 0;
    for (const Metric& metric : follower.telemetry()) {
        if (metric.name != "varve_commands_total") continue;
        for (const telemetry::Sample& one : metric.samples) {
            if (one.labels.front().second == "*") of_users += std::get<double>(one.value);
            if (one.labels.front().second == "$own") own += std::get<double>(one.value);
        }
    }
    EXPECT_EQ(of_users, 0);
    EXPECT_GE(own, 1);
}

TEST_F(Telemetry, says_how_followers_are_doing_and_that_the_store_does_not_tell) {
    Application follower{store, {.sweep_interval = 10ms}};
    follower.follow<Account>(ProjectBalance{});
    const Receipt receipt = follower.execute<Account>("alice", Deposit{5}).value();
    ASSERT_TRUE(follower.wait_for<ProjectBalance>(receipt, 1h));
    const auto of_follower = [&](const std::string& name) {
        double found = missing;
        for (const Metric& metric : follower.telemetry()) {
            if (metric.name != name || metric.samples.empty()) continue;
            EXPECT_EQ(metric.samples.size(), 1U);
            found = std::get<double>(metric.samples.front().value);
        }
        return found;
    };
    EXPECT_EQ(of_follower("varve_follower_events_total"), 1);
    EXPECT_EQ(of_follower("varve_follower_lag_positions"), 0);
    EXPECT_EQ(of_follower("varve_follower_stopped"), 0);
    EXPECT_EQ(of_follower("varve_follower_runs_here"), 1);
    EXPECT_EQ(of_follower("varve_store_up"), 1);
    store->after_query = [](const store::Page&) { throw UnavailableError{"gone"}; };
    EXPECT_EQ(of_follower("varve_store_up"), 0);
    EXPECT_EQ(of_follower("varve_follower_events_total"), missing);
    store->after_query = [](const store::Page&) {};
}

TEST_F(Telemetry, has_the_metrics_of_its_page_and_no_others) {
    std::ifstream file{VARVE_METRICS_PAGE};
    const std::string page{std::istreambuf_iterator<char>{file}, {}};
    const std::regex in_backticks{"`(varve_[a-z_]+)`"};
    std::set<std::string> described;
    for (std::sregex_iterator one{page.begin(), page.end(), in_backticks}, end; one != end; ++one)
        described.insert((*one)[1]);
    std::set<std::string> all;
    for (const Metric& metric : bank.telemetry()) {
        EXPECT_TRUE(all.insert(metric.name).second) << metric.name << " is there twice";
        EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == Metric::Kind::counter) << metric.name;
        EXPECT_EQ(metric.name.ends_with("_duration_seconds"), metric.kind == Metric::Kind::histogram) << metric.name;
        EXPECT_TRUE(metric.help.ends_with('.')) << metric.name;
    }
    EXPECT_EQ(all, described);
}

TEST_F(Telemetry, is_complete_when_many_threads_count_at_once) {
    constexpr int threads = 4;
    constexpr int each = 250;
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (int i = 0; i < each; ++i) bank.execute<Account>("a" + std::to_string(t), Deposit{1}).value();
        });
    }
    all.clear();
    EXPECT_EQ(commands("account", "committed"), threads * each);
    EXPECT_EQ(histogram("varve_command_duration_seconds", {{"aggregate", "account"}}).count(), threads * each);
}

}  // namespace
}  // namespace varve
