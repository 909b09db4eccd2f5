#include "aggregates/state_cache.h"

#include "support/account.h"

#include <thread>

#include <gtest/gtest.h>

namespace varve::aggregates {
namespace {

using account::Account;

const AggregateType& type = aggregate_type<Account>();

Known known(Version head, std::int64_t balance, bool settled = true) {
    auto state = std::make_shared<Account>();
    state->balance = balance;
    return {.state = std::move(state), .head = head, .next_epoch = 0, .settled = settled};
}

std::int64_t balance(const Known& known) {
    return static_cast<const Account*>(known.state.get())->balance;
}

std::uint64_t bytes_of_one() {
    StateCache cache{1 << 20};
    cache.put(type, "account-0", known(1, 0));
    return cache.metrics().bytes;
}

TEST(StateCache, finds_what_was_put_and_counts) {
    StateCache cache{1 << 20};
    EXPECT_FALSE(cache.find(type, "account-a"));
    cache.put(type, "account-a", known(3, 70));
    const auto found = cache.find(type, "account-a");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->head, 3);
    EXPECT_EQ(balance(*found), 70);
    EXPECT_EQ(cache.metrics().hits, 1u);
    EXPECT_EQ(cache.metrics().misses, 1u);
    EXPECT_EQ(cache.metrics().entries, 1u);
}

TEST(StateCache, whoever_was_used_longest_ago_goes_first) {
    StateCache cache{3 * bytes_of_one()};
    for (int i = 0; i < 3; ++i) cache.put(type, "account-" + std::to_string(i), known(1, i));
    EXPECT_TRUE(cache.find(type, "account-0"));
    cache.put(type, "account-3", known(1, 3));
    EXPECT_TRUE(cache.find(type, "account-0"));
    EXPECT_FALSE(cache.find(type, "account-1"));
    EXPECT_TRUE(cache.find(type, "account-2"));
    EXPECT_EQ(cache.metrics().evicted, 1u);
    EXPECT_EQ(cache.metrics().entries, 3u);
}

TEST(StateCache, never_takes_more_than_it_may_however_large_the_states_are) {
    constexpr std::size_t bytes_max = 20'000;
    StateCache cache{bytes_max};
    for (std::size_t i = 0; i < 1000; ++i) {
        Known one = known(1, 0);
        auto state = std::make_shared<Account>();
        state->owner.assign(i * 37 % 5000, 'x');
        one.state = state;
        cache.put(type, "account-" + std::to_string(i % 50), one);
        ASSERT_LE(cache.metrics().bytes, bytes_max);
    }
    EXPECT_GT(cache.metrics().entries, 0u);
}

TEST(StateCache, a_state_larger_than_the_cache_drives_nobody_out) {
    StateCache cache{3 * bytes_of_one()};
    cache.put(type, "account-a", known(1, 1));
    Known large = known(1, 2);
    auto state = std::make_shared<Account>();
    state->owner.assign(100'000, 'x');
    large.state = state;
    cache.put(type, "account-b", large);
    EXPECT_TRUE(cache.find(type, "account-a"));
    EXPECT_FALSE(cache.find(type, "account-b"));
}

TEST(StateCache, an_older_state_never_replaces_a_newer_one_nor_an_unsettled_one_a_settled_one) {
    StateCache cache{1 << 20};
    cache.put(type, "account-a", known(3, 3));
    cache.put(type, "account-a", known(2, 2));
    cache.put(type, "account-a", known(3, 3, false));
    EXPECT_EQ(cache.find(type, "account-a")->head, 3);
    EXPECT_TRUE(cache.find(type, "account-a")->settled);
    cache.put(type, "account-a", known(4, 4, false));
    EXPECT_FALSE(cache.find(type, "account-a")->settled);
    cache.put(type, "account-a", known(4, 4));
    EXPECT_TRUE(cache.find(type, "account-a")->settled);
    EXPECT_EQ(cache.metrics().entries, 1u);
}

struct Other {
    static constexpr std::string_view name = "account";
    using Event = Account::Event;
    void apply(const account::Opened&) {}
    void apply(const account::Deposited&) {}
    void apply(const account::Withdrawn&) {}
};

TEST(StateCache, two_types_of_one_name_do_not_get_each_others_states) {
    StateCache cache{1 << 20};
    cache.put(type, "account-a", known(3, 3));
    EXPECT_FALSE(cache.find(aggregate_type<Other>(), "account-a"));
}

TEST(StateCache, of_no_bytes_remembers_nothing) {
    StateCache cache{0};
    cache.put(type, "account-a", known(3, 3));
    EXPECT_FALSE(cache.find(type, "account-a"));
    EXPECT_EQ(cache.metrics().misses, 0u);
}

TEST(StateCache, of_many_parts_serves_many_threads_and_stays_within_its_bytes) {
    constexpr std::size_t bytes_max = 8 << 20;
    StateCache cache{bytes_max};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                const std::string stream = "account-" + std::to_string((i * 7 + t) % 300);
                if (const auto found = cache.find(type, stream)) {
                    ASSERT_EQ(balance(*found), found->head);
                }
                Known one = known(i, i);
                cache.put(type, stream, std::move(one));
            }
        });
    }
    threads.clear();
    EXPECT_EQ(cache.metrics().entries, 300u);
    EXPECT_LE(cache.metrics().bytes, bytes_max);
    EXPECT_EQ(cache.metrics().hits + cache.metrics().misses, 8000u);
}

}  // namespace
}  // namespace varve::aggregates
