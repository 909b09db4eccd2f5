#include "demo.h"
#include "scratch_bank.h"

#include <gtest/gtest.h>

namespace bank {
namespace {

TEST(Kill, twenty_four_killed_processes_lose_nothing_under_the_protocol) {
    const ScratchBank bank;
    const DemoResult result = run_demo({.program = BANK_PROGRAM,
                                        .store = bank.url(),
                                        .strategy = "protocol",
                                        .load = {.workers = 3, .transfers = 1'200, .accounts = 20, .theta = 0.5},
                                        .processes = 3,
                                        .kills = 24,
                                        .lease = std::chrono::milliseconds{300}});
    EXPECT_EQ(result.kills, 24u);
    EXPECT_EQ(result.before, 20 * 1'000'00);
    EXPECT_EQ(result.after, result.before);
    EXPECT_EQ(result.acknowledged.whole, result.acknowledged.total());
    EXPECT_EQ(result.acknowledged.total(), result.figures.committed);
    EXPECT_EQ(result.refused.absent, result.refused.total());
    EXPECT_GT(result.cut_off.total(), 0u);
    EXPECT_EQ(result.cut_off.half, 0u);
    EXPECT_EQ(result.audit.summed_up, result.audit.turnover);
    EXPECT_GE(result.audit.summed_up.movements, static_cast<std::int64_t>(2 * result.acknowledged.total()));
    for (const Audit::Rule& rule : result.audit.rules) {
        EXPECT_TRUE(rule.holds()) << rule.name << ": " << ::testing::PrintToString(rule.broken);
    }
    const Ran check = bank.run({"check"});
    EXPECT_EQ(check.code, 0) << check.output;
}

}  // namespace
}  // namespace bank
