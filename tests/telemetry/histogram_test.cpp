#include <varve/telemetry/instruments.h>

#include <cmath>

#include <gtest/gtest.h>

namespace varve::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, of_nothing_is_empty) {
    const HistogramValue value = Histogram{}.value();
    EXPECT_EQ(value.count(), 0U);
    EXPECT_EQ(value.sum, 0);
    EXPECT_EQ(value.quantile(0.5), 0);
}

TEST(Histogram, counts_a_duration_in_the_smallest_bucket_that_holds_it) {
    for (std::size_t i = 0; i < HistogramValue{}.buckets.size(); ++i) {
        const Duration bound{std::int64_t{1} << i};
        Histogram histogram;
        histogram.record(bound);
        histogram.record(bound + 1us);
        const HistogramValue value = histogram.value();
        EXPECT_DOUBLE_EQ(value.buckets[i].upper_bound, std::chrono::duration<double>(bound).count());
        EXPECT_EQ(value.buckets[i].count, 1U) << i;
        const bool is_last = i + 1 == value.buckets.size();
        EXPECT_EQ(is_last ? value.beyond : value.buckets[i + 1].count, 1U) << i;
        EXPECT_EQ(value.count(), 2U);
    }
}

TEST(Histogram, takes_zero_and_what_a_clock_that_went_back_says_for_its_first_bucket) {
    Histogram histogram;
    histogram.record(0us);
    histogram.record(-5s);
    EXPECT_EQ(histogram.value().buckets.front().count, 2U);
    EXPECT_EQ(histogram.value().sum, 0);
}

TEST(Histogram, has_a_sum_in_seconds_and_quantiles_that_are_bounds) {
    Histogram histogram;
    for (int i = 0; i < 90; ++i) histogram.record(1ms);
    for (int i = 0; i < 10; ++i) histogram.record(1s);
    const HistogramValue value = histogram.value();
    EXPECT_NEAR(value.sum, 10.09, 1e-9);
    EXPECT_DOUBLE_EQ(value.quantile(0.5), 1024e-6);
    EXPECT_DOUBLE_EQ(value.quantile(0.9), 1024e-6);
    EXPECT_DOUBLE_EQ(value.quantile(0.91), 1048576e-6);
    histogram.record(1h, 1000);
    EXPECT_EQ(histogram.value().beyond, 1000U);
    EXPECT_TRUE(std::isinf(histogram.value().quantile(0.5)));
}

}  // namespace
}  // namespace varve::telemetry
