#include "demo.h"

#include "scratch_bank.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace bank {
namespace {

TEST(Demo, survives_kills_and_says_so) {
    for (const char* strategy : {"automatic", "protocol"}) {
        const ScratchBank bank;
        const Ran run =
            ScratchBank::run_plain({"--strategy", strategy, "--store", "sqlite:" + bank.file(), "demo", "--accounts",
                                    "50", "--transfers", "400", "--processes", "3", "--workers", "2", "--kills", "4"});
        EXPECT_EQ(run.code, 0) << run.output;
        EXPECT_NE(run.output.find("4 processes by SIGKILL"), std::string::npos) << run.output;
        EXPECT_NE(run.output.find("50,000.00  ✓"), std::string::npos) << run.output;
        EXPECT_NE(run.output.find(", it missed none,"), std::string::npos) << run.output;
        EXPECT_NE(run.output.find(" out, as the events say"), std::string::npos) << run.output;
        EXPECT_EQ(bank.run({"check"}).code, 0);
        std::istringstream screen{run.output};
        std::size_t lines = 0;
        for (std::string line; std::getline(screen, line); ++lines) {
            const bool has_path = line.find('/') != std::string::npos;
            EXPECT_LE(has_path ? 0 : line.size(), 84u) << line;
        }
        EXPECT_LE(lines, 24u) << run.output;
    }
}

TEST(Demo, processes_cannot_share_memory) {
    EXPECT_EQ(ScratchBank::run_plain({"--store", "memory:", "demo"}).code, 2);
}

TEST(Demo, a_bank_that_is_there_is_left_alone) {
    const ScratchBank bank;
    ASSERT_EQ(bank.run({"open", "alice"}).code, 0);
    EXPECT_EQ(bank.run({"demo"}).code, 2);
    EXPECT_EQ(bank.run({"statement", "alice"}).code, 0);
}

TEST(Demo, stops_its_processes_when_it_is_told_to_stop) {
    // Whoever loses its parent becomes a child of this process, so nobody can be left behind unseen.
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    const ScratchBank bank;
    Child demo = ScratchBank::start({"--store", bank.url(), "demo", "--accounts", "50", "--transfers", "1000000"});
    const std::string task = std::to_string(demo.pid());
    const std::string children = "/proc/" + task + "/task/" + task + "/children";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{100};
    std::string found;
    while (found.empty() && std::chrono::steady_clock::now() < deadline) {
        std::getline(std::ifstream{children}, found);
        sched_yield();
    }
    ASSERT_FALSE(found.empty());
    demo.kill(SIGTERM);
    EXPECT_EQ(demo.wait(), 128 + SIGTERM);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

}  // namespace
}  // namespace bank
