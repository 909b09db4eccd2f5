#include <varve/core/ids.h>

#include <array>
#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve {
namespace {

class FixedRandom final : public Random {
  public:
    std::uint64_t next() override { return ~std::uint64_t{0}; }
};

class FixedClock final : public Clock {
  public:
    Time now() override { return Time{std::chrono::milliseconds{0x0123456789ab}}; }
    SteadyTime steady_now() override { return {}; }
    void sleep_for(Duration, std::stop_token) override {}
};

TEST(Ids, a_uuid_has_time_version_and_variant_where_rfc_9562_says) {
    FixedClock clock;
    FixedRandom random;
    EXPECT_EQ(uuid7({.clock = clock, .random = random}), "01234567-89ab-7fff-bfff-ffffffffffff");
}

TEST(Ids, a_uuid_tells_when_it_was_made_and_what_is_none_tells_nothing) {
    FixedClock clock;
    const std::string id = uuid7({.clock = clock});
    EXPECT_EQ(time_of(id), clock.now());
    EXPECT_EQ(time_of(id + ".2"), clock.now());
    for (const char* none : {"", "x", "0123456789ab-7fff-bfff-ffffffffffffffff", "01234567-89ab-4fff-bfff-ffffffffffff",
                             "0123456x-89ab-7fff-bfff-ffffffffffff", "+1234567-89ab-7fff-bfff-ffffffffffff"})
        EXPECT_EQ(time_of(none), std::nullopt) << none;
}

TEST(Ids, they_do_not_repeat) {
    std::set<std::string> ids;
    for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(ids.insert(uuid7({})).second);
}

TEST(Ids, a_forked_child_draws_other_numbers_than_its_parent) {
    Random::system().next();
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        const std::uint64_t drawn = Random::system().next();
        _exit(write(ends[1], &drawn, sizeof drawn) == sizeof drawn ? 0 : 1);
    }
    const std::uint64_t mine = Random::system().next();
    std::uint64_t drawn = 0;
    ASSERT_EQ(read(ends[0], &drawn, sizeof drawn), static_cast<ssize_t>(sizeof drawn));
    EXPECT_NE(mine, drawn);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    close(ends[0]);
    close(ends[1]);
}

}  // namespace
}  // namespace varve
