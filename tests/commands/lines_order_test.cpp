#include "commands/lines.h"
#include "transactions/settled_reader.h"

#include <varve/testing/manual_clock.h>

#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

/// Who goes when, of those who stand in the lines of one process.
namespace varve::detail {
namespace {

using namespace std::chrono_literals;
using Names = std::set<std::string>;

struct LinesOrder : ::testing::Test {
    static constexpr Duration patience = 500ms;
    testing::ManualClock clock;
    Lines lines{{.clock = clock}, patience};

    /// A command in a thread of its own, which waits if it must.
    struct Waiting {
        LinesOrder& test;
        std::optional<Lines::Places> places{test.lines};
        std::promise<bool> went{};
        std::future<bool> goes{went.get_future()};
        std::jthread thread;

        Waiting(LinesOrder& test_, const Names& names, std::size_t waiting) : test(test_) {
            thread = std::jthread{[this, names] { went.set_value(places->enter(names, SteadyTime::max())); }};
            test.clock.wait_for_sleepers(waiting);
        }
        bool still_waits() const { return goes.wait_for(0s) == std::future_status::timeout; }
        void end() {
            EXPECT_TRUE(goes.get()) << "it did not wait";
            places.reset();
        }
    };
    /// Whether a newcomer could go at once, who is gone again.
    bool is_free(const Names& names) {
        Lines::Places newcomer{lines};
        try {
            EXPECT_FALSE(newcomer.enter(names, clock.steady_now())) << "it waited";
            return true;
        } catch (const transactions::BlockedError&) {
            return false;
        }
    }
};

TEST_F(LinesOrder, of_those_in_one_line_one_goes_at_a_time_and_the_oldest_is_next) {
    std::optional<Lines::Places> first{lines};
    EXPECT_FALSE(first->enter({"a"}, SteadyTime::max()));
    EXPECT_FALSE(is_free({"a", "b"}));
    EXPECT_TRUE(is_free({"b"}));
    Waiting second{*this, {"a", "b"}, 1};
    Waiting third{*this, {"a"}, 2};
    first.reset();
    second.goes.wait();
    EXPECT_TRUE(third.still_waits());
    second.end();
    third.end();
    EXPECT_TRUE(lines.are_empty());
}

TEST_F(LinesOrder, who_waits_for_something_else_keeps_nobody_back_unless_it_is_the_oldest_of_all) {
    std::optional<Lines::Places> first{lines};
    EXPECT_FALSE(first->enter({"a"}, SteadyTime::max()));
    Waiting oldest{*this, {"a", "b"}, 1};
    Waiting next{*this, {"a", "c"}, 2};
    EXPECT_TRUE(is_free({"c"}));
    EXPECT_TRUE(is_free({"d"}));
    EXPECT_FALSE(is_free({"b"})) << "its turn would never come";
    first.reset();
    oldest.goes.wait();
    EXPECT_FALSE(is_free({"c"})) << "the next one is the oldest now";
    oldest.end();
    next.end();
}

TEST_F(LinesOrder, who_has_gone_for_long_keeps_nobody_back_but_a_long_line_does) {
    std::optional<Lines::Places> first{lines};
    EXPECT_FALSE(first->enter({"a"}, SteadyTime::max()));
    Waiting second{*this, {"a"}, 1};
    Waiting third{*this, {"a"}, 2};
    clock.advance(patience - 1ms);
    first.reset();
    second.goes.wait();
    clock.wait_for_sleepers(1);
    clock.advance(patience - 1ms);
    clock.wait_for_sleepers(1);
    EXPECT_TRUE(third.still_waits()) << "it has waited for longer than the patience, but not for one alone";
    clock.advance(patience);
    third.end();
    second.end();
}

TEST_F(LinesOrder, who_needs_more_while_it_goes_lets_others_go_until_it_is_free_and_is_older_than_they) {
    Lines::Places first{lines};
    EXPECT_FALSE(first.enter({"a"}, SteadyTime::max()));
    EXPECT_FALSE(first.enter({"a"}, SteadyTime::max())) << "it stands there";
    EXPECT_FALSE(first.enter({"b"}, SteadyTime::max())) << "that is free";
    first.leave();

    std::optional<Lines::Places> other{lines};
    EXPECT_FALSE(other->enter({"z"}, SteadyTime::max()));
    Waiting oldest{*this, {"z"}, 1};
    EXPECT_FALSE(first.enter({"a"}, SteadyTime::max()));
    std::promise<void> went;
    std::jthread more{[&] {
        EXPECT_TRUE(first.enter({"a", "z"}, SteadyTime::max()));
        went.set_value();
    }};
    clock.wait_for_sleepers(2);
    EXPECT_TRUE(is_free({"a"})) << "it does not go";
    Waiting youngest{*this, {"z"}, 3};
    other.reset();
    oldest.end();
    went.get_future().wait();
    EXPECT_FALSE(is_free({"a"})) << "it goes again";
    EXPECT_TRUE(youngest.still_waits());
    more.join();
    first.leave();
    youngest.end();
}

TEST_F(LinesOrder, who_gives_up_leaves_all_lines_and_names_one_that_it_waited_in) {
    Lines::Places first{lines};
    EXPECT_FALSE(first.enter({"b"}, SteadyTime::max()));
    Lines::Places second{lines};
    EXPECT_FALSE(second.enter({"a"}, SteadyTime::max()));
    try {
        static_cast<void>(second.enter({"b"}, clock.steady_now()));
        FAIL() << "it went";
    } catch (const transactions::BlockedError& error) {
        EXPECT_EQ(error.details().item, "b");
    }
    EXPECT_TRUE(is_free({"a"}));
    first.leave();
    EXPECT_TRUE(lines.are_empty());
}

TEST_F(LinesOrder, the_time_of_waiting_is_counted) {
    Lines::Places first{lines};
    EXPECT_FALSE(first.enter({"a"}, SteadyTime::max()));
    EXPECT_EQ(first.waited(), 0s);
    Waiting second{*this, {"a"}, 1};
    clock.advance(300ms);
    first.leave();
    second.goes.wait();
    EXPECT_EQ(second.places->waited(), 300ms);
    second.end();
}

}  // namespace
}  // namespace varve::detail
