#ifdef VARVE_PROMTOOL

#include "support/account.h"
#include "support/temporary_folder.h"

#include <varve/prometheus/prometheus.h>
#include <varve/testing/manual_world.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace varve {
namespace {

using namespace account;
using telemetry::Metric;

/// What a command says, and how it ends.
std::pair<std::string, int> run(const std::string& command) {
    std::string said;
    FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {"cannot run " + command, -1};
    char part[4096];
    while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) said.append(part, size);
    const int status = pclose(pipe);
    return {said, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// What `promtool check metrics` has to say of a text; empty: nothing.
std::string complaints(const std::string& text) {
    static const auto promtool = run(std::string{VARVE_PROMTOOL} + " " + VARVE_PROMTOOL_FOLDER);
    if (promtool.second != 0) return "no promtool: " + promtool.first;
    const std::string program = promtool.first.substr(0, promtool.first.find('\n'));
    const TemporaryFolder folder{"metrics"};
    const std::string file = folder.path() / "metrics";
    std::ofstream{file, std::ios::binary} << text;
    const auto [said, status] = run(program + " check metrics <" + file);
    return status == 0 ? said : said + "(exit " + std::to_string(status) + ")";
}

TEST(PrometheusText, of_an_application_is_accepted_by_promtool) {
    testing::ManualWorld world;
    Application bank{open("memory:"), world.options()};
    bank.follow<Account>(ProjectBalance{});
    ASSERT_TRUE(bank.execute<Account>("alice", Deposit{5}));
    ASSERT_FALSE(bank.execute<Account>("alice", Withdraw{6}));
    const std::string text = prometheus::text(bank.telemetry());
    EXPECT_EQ(complaints(text), "");
    EXPECT_NE(text.find("# TYPE varve_commands_total counter\n"
                        "varve_commands_total{aggregate=\"account\",outcome=\"committed\"} 1\n"
                        "varve_commands_total{aggregate=\"account\",outcome=\"rejected\"} 1\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("varve_command_duration_seconds_bucket{aggregate=\"account\",le=\"+Inf\"} 2\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("varve_command_duration_seconds_count{aggregate=\"account\"} 2\n"), std::string::npos) << text;
}

TEST(PrometheusText, that_breaks_the_rules_is_found_by_promtool) {
    const Metric bad{"varve_things", "Has the kind of another name.", Metric::Kind::counter, {{{}, 1.0}}};
    EXPECT_NE(complaints(prometheus::text({&bad, 1})), "");
}

TEST(PrometheusText, quotes_what_would_end_a_label) {
    const Metric odd{
        "varve_odd_total", "A \"text\"\nof two lines.", Metric::Kind::counter, {{{{"name", "a\"b\\c\nd"}}, 2.5}}};
    const std::string text = prometheus::text({&odd, 1});
    EXPECT_EQ(complaints(text), "");
    EXPECT_NE(text.find("varve_odd_total{name=\"a\\\"b\\\\c\\nd\"} 2.5\n"), std::string::npos) << text;
}

TEST(PrometheusText, has_cumulated_buckets_and_their_sum) {
    telemetry::Histogram histogram;
    histogram.record(std::chrono::microseconds{1});
    histogram.record(std::chrono::microseconds{3});
    histogram.record(std::chrono::hours{1});
    const Metric took{"varve_took_seconds", "How long.", Metric::Kind::histogram, {{{}, histogram.value()}}};
    const std::string text = prometheus::text({&took, 1});
    EXPECT_EQ(complaints(text), "");
    for (const char* const line :
         {"_bucket{le=\"1e-06\"} 1\n", "_bucket{le=\"2e-06\"} 1\n", "_bucket{le=\"4e-06\"} 2\n",
          "_bucket{le=\"+Inf\"} 3\n", "_count 3\n", "_sum 3600.000004\n"})
        EXPECT_NE(text.find(std::string{"varve_took_seconds"} + line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace varve

#endif
