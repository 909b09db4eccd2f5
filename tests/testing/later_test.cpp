#include <varve/testing/later.h>

#include <string>

#include <gtest/gtest.h>

namespace varve::testing {
namespace {

struct KeptWork : ::testing::Test {
    Later later;
    std::string ran;

    void post(char name) {
        later.post([this, name] { ran += name; });
    }
};

TEST_F(KeptWork, runs_when_the_test_says_so_and_in_its_order) {
    for (const char name : {'a', 'b', 'c'}) post(name);
    EXPECT_EQ(ran, "");
    EXPECT_TRUE(later.run_next());
    EXPECT_EQ(ran, "a");
    later.drain();
    EXPECT_EQ(ran, "abc");
    EXPECT_FALSE(later.run_next());
}

TEST_F(KeptWork, that_posts_more_is_drained_with_what_it_posts) {
    later.post([this] {
        ran += 'a';
        post('b');
    });
    later.drain();
    EXPECT_EQ(ran, "ab");
}

TEST_F(KeptWork, that_throws_leaves_what_is_behind_it) {
    later.post([] { throw 42; });
    post('b');
    EXPECT_THROW(later.drain(), int);
    EXPECT_EQ(ran, "");
    later.drain();
    EXPECT_EQ(ran, "b");
}

TEST_F(KeptWork, is_dropped_when_its_process_dies) {
    post('a');
    later.forget();
    later.drain();
    EXPECT_EQ(ran, "");
}

}  // namespace
}  // namespace varve::testing
