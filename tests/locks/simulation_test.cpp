#include "locks/simulation.h"

#include "support/sanitized.h"

#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

/// The figures are for release builds; VARVE_LOCK_SEED=N runs one seed alone.
namespace varve::lock_simulation {
namespace {

#ifdef NDEBUG
constexpr std::uint64_t seeds = is_sanitized ? 20 : 200;
#else
constexpr std::uint64_t seeds = 20;
#endif

void expect_no_violation(const Settings& settings, const Result& result) {
    for (const std::string& violation : result.violations) {
        ADD_FAILURE() << violation << "\nseed=" << settings.seed << " replay: VARVE_LOCK_SEED=" << settings.seed
                      << " test_locks --gtest_filter='ThirtyProcesses.*'";
    }
}

std::vector<std::uint64_t> chosen_seeds(std::uint64_t count) {
    if (const char* one = std::getenv("VARVE_LOCK_SEED")) return {std::strtoull(one, nullptr, 10)};
    std::vector<std::uint64_t> all;
    for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
    return all;
}

TEST(ThirtyProcesses, with_pauses_kills_lost_answers_and_wrong_clocks_never_overlap_in_fenced_sections) {
    Result all;
    for (const std::uint64_t seed : chosen_seeds(seeds)) {
        const Settings settings{seed};
        const Result result = simulate(settings);
        expect_no_violation(settings, result);
        if (seed % 50 == 0) {
            EXPECT_EQ(simulate(settings).trace, result.trace) << "seed " << seed << " ran in two ways";
        }
        all.acquired += result.acquired;
        all.gave_up += result.gave_up;
        all.lost += result.lost;
        all.cleaned += result.cleaned;
        all.refused += result.refused;
        all.committed += result.committed;
        all.stopped += result.stopped;
        all.requests += result.requests;
    }
    std::cout << all.acquired << " acquired, " << all.gave_up << " gave up, " << all.lost << " lost, " << all.cleaned
              << " rows cleaned, " << all.committed << " committed, " << all.refused
              << " refused by the fence unawares, " << all.stopped << " stopped, " << all.requests << " requests\n";
    if (std::getenv("VARVE_LOCK_SEED") != nullptr) return;
    for (const std::uint64_t count :
         {all.acquired, all.gave_up, all.lost, all.cleaned, all.refused, all.committed, all.stopped}) {
        EXPECT_GE(count, seeds / 4);
    }
}

TEST(ThirtyProcesses, of_which_nothing_fails_enter_in_the_order_of_the_queue_and_leave_nothing) {
    std::uint64_t gave_up = 0;
    for (const std::uint64_t seed : chosen_seeds(seeds / 10)) {
        const Settings settings = Settings::in_calm(seed);
        const Result result = simulate(settings);
        expect_no_violation(settings, result);
        EXPECT_EQ(result.acquired + result.gave_up, settings.processes * settings.sections);
        EXPECT_EQ(result.lost + result.cleaned, 0u);
        EXPECT_GE(result.committed, result.acquired);
        gave_up += result.gave_up;
    }
    EXPECT_GT(gave_up, 0u);
}

TEST(ThirtyProcesses, without_the_fence_do_overlap_so_the_judge_can_tell) {
    std::uint64_t found = 0;
    for (std::uint64_t seed = 1; seed <= 20 && found == 0; ++seed) {
        Settings settings{seed};
        settings.fenced = false;
        for (const std::string& violation : simulate(settings).violations)
            found += violation.starts_with("sections overlap");
    }
    EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace varve::lock_simulation
