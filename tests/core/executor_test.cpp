#include <varve/core/executor.h>
#include <varve/core/runtime.h>

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace varve {
namespace {

struct Collected final : Log {
    std::vector<std::string> lines;
    void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
};

TEST(Executor, goes_on_whatever_a_task_throws) {
    Collected log;
    Runtime runtime{.log = log};
    const auto threads = make_thread_executor(1, runtime);
    std::atomic<int> done{0};
    threads->post([] { throw 42; });
    threads->post([] { throw std::runtime_error("no luck"); });
    threads->post([&] { ++done; });
    threads->drain();
    EXPECT_EQ(done, 1);
    ASSERT_EQ(log.lines.size(), 2u);
    EXPECT_NE(log.lines[1].find("no luck"), std::string::npos);
}

}  // namespace
}  // namespace varve
