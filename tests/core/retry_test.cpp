#include <varve/core/retry.h>
#include <varve/core/suggest.h>
#include <varve/testing/manual_clock.h>

#include <vector>

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace std::chrono_literals;

/// Its wall clock is set back by an hour with every look.
class StepClock final : public Clock {
  public:
    Time now() override { return wall_ -= 1h; }
    SteadyTime steady_now() override { return now_; }
    void sleep_for(Duration duration, std::stop_token) override {
        slept.push_back(duration);
        now_ += duration;
    }
    std::vector<Duration> slept;

  private:
    Time wall_{};
    SteadyTime now_{};
};

/// Always draws the largest number below a bound.
class HighestRandom final : public Random {
  public:
    std::uint64_t next() override { return ~std::uint64_t{0}; }
};

TEST(Backoff, delays_double_up_to_their_maximum) {
    StepClock clock;
    HighestRandom random;
    Backoff backoff{{.first_delay = 1ms, .delay_max = 4ms, .attempts_max = 6}, {.clock = clock, .random = random}};
    while (backoff.next()) {
    }
    EXPECT_EQ(clock.slept, (std::vector<Duration>{1ms, 2ms, 4ms, 4ms, 4ms}));
    EXPECT_EQ(backoff.attempts(), 6u);
}

TEST(Backoff, no_attempt_begins_after_the_deadline_and_no_sleep_passes_it) {
    StepClock clock;
    HighestRandom random;
    Backoff backoff{{.first_delay = 3ms, .delay_max = 3ms, .time_max = 7ms}, {.clock = clock, .random = random}};
    while (backoff.next()) {
    }
    EXPECT_EQ(clock.slept, (std::vector<Duration>{3ms, 3ms, 1ms}));
}

TEST(Backoff, a_wall_clock_that_is_set_neither_ends_a_wait_nor_prolongs_it) {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    HighestRandom random;
    const SteadyTime began = clock.steady_now();
    Backoff backoff{RetryPolicy::waiting(3s), {.clock = clock, .random = random}};
    clock.jump(1h);
    EXPECT_TRUE(backoff.next());
    clock.jump(-2h);
    while (backoff.next()) {
    }
    EXPECT_EQ(clock.steady_now() - began, 3s);
}

TEST(Backoff, a_policy_may_wait_for_ever) {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    clock.advance(1h);
    Backoff backoff{RetryPolicy::waiting(Duration::max()), {.clock = clock}};
    clock.advance(1h);
    EXPECT_TRUE(backoff.next());
}

TEST(Backoff, says_what_was_spent_and_what_ended_it) {
    testing::ManualClock clock{testing::ManualClock::Mode::auto_advance};
    Backoff slept{{.time_max = 15s}, {.clock = clock}};
    clock.advance(16s + 200ms);
    EXPECT_FALSE(slept.next());
    EXPECT_EQ(slept.spent(), "after 1 attempt in 16.2 s, of the 15 s that retry.time_max allows");
    Backoff once{RetryPolicy::once(), {.clock = clock}};
    EXPECT_FALSE(once.next());
    EXPECT_EQ(once.spent(), "after 1 attempt, as many as retry.attempts_max allows");
    Backoff twice{{.attempts_max = 2}, {.clock = clock}};
    EXPECT_TRUE(twice.next());
    EXPECT_FALSE(twice.next());
    EXPECT_EQ(twice.spent(), "after 2 attempts, as many as retry.attempts_max allows");
}

TEST(Backoff, the_first_retry_may_come_at_once) {
    StepClock clock;
    HighestRandom random;
    Backoff backoff{{.first_delay = 2ms, .attempts_max = 3}, {.clock = clock, .random = random}};
    EXPECT_TRUE(backoff.next_without_delay());
    EXPECT_TRUE(clock.slept.empty());
    EXPECT_TRUE(backoff.next_without_delay());
    EXPECT_EQ(clock.slept, std::vector<Duration>{2ms});
    EXPECT_FALSE(backoff.next_without_delay());
}

TEST(Suggest, a_near_word_is_proposed_and_a_far_one_is_not) {
    const std::vector<std::string> known{"memory", "sqlite"};
    EXPECT_EQ(suggest("sqlit", known), " (did you mean 'sqlite'? known: memory, sqlite)");
    EXPECT_EQ(suggest("oracle", known), " (known: memory, sqlite)");
}

}  // namespace
}  // namespace varve
