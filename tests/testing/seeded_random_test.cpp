#include <varve/testing/seeded_random.h>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

TEST(SeededRandom, one_seed_gives_one_sequence_on_every_platform) {
    SeededRandom random{5489};
    for (int i = 1; i < 10'000; ++i) random.next();
    EXPECT_EQ(random.next(), 9981545732273789042u);  // the 10,000th number, as [rand.predef] requires it
}

TEST(SeededRandom, a_chance_comes_about_as_often_as_its_probability_says) {
    SeededRandom random{1};
    int hits = 0;
    for (int i = 0; i < 10'000; ++i) hits += random.chance(0.25);
    EXPECT_NEAR(hits, 2'500, 200);
    EXPECT_TRUE(random.chance(1));
}

TEST(SeededRandom, an_impossible_chance_draws_nothing) {
    SeededRandom a{7};
    SeededRandom b{7};
    EXPECT_FALSE(a.chance(0));
    EXPECT_EQ(a.next(), b.next());
}

}  // namespace
}  // namespace varve::testing
