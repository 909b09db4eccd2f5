#include <varve/core/error.h>
#include <varve/cron/cron.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve {
namespace {

using Texts = std::vector<std::string>;

/// "2026-01-31T12:00": the next ones, in UTC.
Texts after(const std::string& time, const Cron& cron, int count) {
    Texts all;
    Time at = parse_time(time + ":00Z");
    for (int i = 0; i < count; ++i) {
        at = cron.next(at);
        all.push_back(to_string(at).substr(0, 16));
    }
    return all;
}

std::string refused(const std::string& expression, const std::string& zone = "UTC") {
    try {
        const Cron cron{expression, zone};
    } catch (const InvalidError& error) {
        return error.what();
    }
    return "nothing";
}

TEST(Cron, each_field_may_be_a_list_of_numbers_names_and_ranges_with_a_step) {
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"*/20 * * * *"}, 4),
              (Texts{"2026-01-31T12:20", "2026-01-31T12:40", "2026-01-31T13:00", "2026-01-31T13:20"}));
    EXPECT_EQ(
        after("2026-01-31T12:00", Cron{"5,10-20/5 3 * * *"}, 5),
        (Texts{"2026-02-01T03:05", "2026-02-01T03:10", "2026-02-01T03:15", "2026-02-01T03:20", "2026-02-02T03:05"}));
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"0 9 * * mon-FRI"}, 6),
              (Texts{"2026-02-02T09:00", "2026-02-03T09:00", "2026-02-04T09:00", "2026-02-05T09:00", "2026-02-06T09:00",
                     "2026-02-09T09:00"}));
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"0 0 1 JAN,jul *"}, 2), (Texts{"2026-07-01T00:00", "2027-01-01T00:00"}));
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"0 0 * * 7"}, 1), after("2026-01-31T12:00", Cron{"0 0 * * 0"}, 1));
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"0 0 * * 5-7"}, 3),
              (Texts{"2026-02-01T00:00", "2026-02-06T00:00", "2026-02-07T00:00"}));
}

TEST(Cron, a_moment_itself_is_not_after_it_and_seconds_count) {
    const Cron noon{"0 12 * * *"};
    EXPECT_EQ(to_string(noon.next(parse_time("2026-01-31T12:00:00Z"))), "2026-02-01T12:00:00.000000Z");
    EXPECT_EQ(to_string(noon.next(parse_time("2026-01-31T11:59:59.999999Z"))), "2026-01-31T12:00:00.000000Z");
}

TEST(Cron, two_kinds_of_days_are_alternatives_where_both_are_restricted) {
    EXPECT_EQ(after("2026-02-10T00:00", Cron{"0 0 13 * FRI"}, 3),
              (Texts{"2026-02-13T00:00", "2026-02-20T00:00", "2026-02-27T00:00"}));
    EXPECT_EQ(after("2026-01-10T00:00", Cron{"0 0 13 * FRI"}, 2), (Texts{"2026-01-13T00:00", "2026-01-16T00:00"}));
    EXPECT_EQ(after("2026-01-10T00:00", Cron{"0 0 13 * *"}, 2), (Texts{"2026-01-13T00:00", "2026-02-13T00:00"}));
}

TEST(Cron, a_leap_day_may_be_eight_years_away) {
    EXPECT_EQ(after("2096-03-01T00:00", Cron{"0 0 29 2 *"}, 2), (Texts{"2104-02-29T00:00", "2108-02-29T00:00"}));
    EXPECT_NE(refused("0 0 30 2 *").find("never happens"), std::string::npos);
    EXPECT_NE(refused("0 0 31 4,6 *").find("never happens"), std::string::npos);
}

TEST(Cron, it_goes_by_the_clocks_of_its_place) {
    const Cron nine{"0 9 * * *", "Europe/Berlin"};
    EXPECT_EQ(after("2026-03-27T12:00", nine, 3), (Texts{"2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"}));
    EXPECT_EQ(after("2026-01-31T12:00", Cron{"30 23 * * *", "Asia/Kolkata"}, 1), (Texts{"2026-01-31T18:00"}));
}

// In Berlin clocks go from 2:00 to 3:00 on 2026-03-29, and from 3:00 to 2:00 on 2026-10-25.

TEST(Cron, what_falls_into_an_hour_that_is_left_out_happens_when_that_is_over) {
    const Cron cron{"30 2 * * *", "Europe/Berlin"};
    EXPECT_EQ(after("2026-03-28T00:00", cron, 3), (Texts{"2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"}));
}

TEST(Cron, what_falls_into_an_hour_that_comes_twice_happens_once) {
    const Cron cron{"30 2 * * *", "Europe/Berlin"};
    EXPECT_EQ(after("2026-10-24T12:00", cron, 2), (Texts{"2026-10-25T00:30", "2026-10-26T01:30"}));
}

TEST(Cron, what_happens_each_hour_goes_by_the_time_that_passes) {
    const Cron half{"*/30 * * * *", "Europe/Berlin"};
    EXPECT_EQ(after("2026-10-24T23:30", half, 6), (Texts{"2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00",
                                                         "2026-10-25T01:30", "2026-10-25T02:00", "2026-10-25T02:30"}));
    EXPECT_EQ(after("2026-03-29T00:00", half, 4),
              (Texts{"2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-29T02:00"}));
}

TEST(Cron, an_hour_set_back_across_midnight_is_not_lost) {
    // In Havana clocks go from 1:00 to 0:00 on 2020-11-01.
    const Cron cron{"45 0 * * *", "America/Havana"};
    EXPECT_EQ(after("2020-11-01T04:50", cron, 1), (Texts{"2020-11-02T05:45"}));
    EXPECT_EQ(after("2020-11-01T04:40", cron, 1), (Texts{"2020-11-01T04:45"}));
}

TEST(Cron, shorthands_are_what_they_say) {
    for (const auto& [shorthand, long_form] : {std::pair{"@hourly", "0 * * * *"},
                                               {"@daily", "0 0 * * *"},
                                               {"@weekly", "0 0 * * 0"},
                                               {"@monthly", "0 0 1 * *"},
                                               {"@yearly", "0 0 1 1 *"}}) {
        EXPECT_EQ(after("2026-01-31T12:00", Cron{shorthand}, 3), after("2026-01-31T12:00", Cron{long_form}, 3));
    }
}

TEST(Cron, what_cannot_be_read_is_named) {
    EXPECT_NE(refused("* * * *").find("has 4 fields; give it five"), std::string::npos);
    EXPECT_NE(refused("60 * * * *").find("'60' as the minute is none; give 0 to 59"), std::string::npos);
    EXPECT_NE(refused("* 9-8 * * *").find("'9-8' as the hour ends before it begins"), std::string::npos);
    EXPECT_NE(refused("*/0 * * * *").find("has a step that is no number above 0"), std::string::npos);
    EXPECT_NE(refused("5/10 * * * *").find("has a step and no range"), std::string::npos);
    EXPECT_NE(refused("0 0 0 * *").find("as the day of the month is none; give 1 to 31"), std::string::npos);
    EXPECT_NE(refused("0 0 * FOO *").find("as the month is none; give 1 to 12, or a name such as JAN"),
              std::string::npos);
    EXPECT_NE(refused("1, * * * *").find("as the minute is none"), std::string::npos);
    EXPECT_NE(refused("@often").find("has 1 fields"), std::string::npos);
    EXPECT_NE(refused("@daily", "Europe/Atlantis").find("'Europe/Atlantis' is no time zone that this system knows"),
              std::string::npos);
}

TEST(Cron, a_time_beyond_all_rules_is_refused) {
    EXPECT_THROW(Cron{"@daily"}.next(Time::max()), InvalidError);
    EXPECT_THROW(Cron{"@daily"}.next(Time::min()), InvalidError);
}

}  // namespace
}  // namespace varve
