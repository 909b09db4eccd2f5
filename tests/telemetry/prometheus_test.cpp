#ifdef VARVE_PROMTOOL

#include "support/account.h"
#include "support/temporary_folder.h"

#include <varve/prometheus/prometheus.h>
#include <varve/testing/manual_world.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>

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

std::string promtool() {
    static const auto found = run("'" VARVE_PROMTOOL "' '" VARVE_PROMTOOL_FOLDER "'");
    if (found.second != 0) throw std::runtime_error("no promtool: " + found.first);
    return "'" + found.first.substr(0, found.first.find('\n')) + "'";
}

/// What `promtool check metrics` has to say of a text; empty: nothing.
std::string complaints(const std::string& text) {
    const TemporaryFolder folder{"metrics"};
    const std::string file = folder.path() / "metrics";
    std::ofstream{file, std::ios::binary} << text;
    const auto [said, status] = run(promtool() + " check metrics <'" + file + "'");
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
                        "varve_commands_total{aggregate=\"account\",outcome=\"repeated\"} 0\n"
                        "varve_commands_total{aggregate=\"account\",outcome=\"rejected\"} 1\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("varve_command_duration_seconds_bucket{aggregate=\"account\",le=\"+Inf\"} 2\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("varve_command_duration_seconds_count{aggregate=\"account\"} 2\n"), std::string::npos) << text;
}

/// The names of metrics that a file for Prometheus or Grafana uses.
std::set<std::string> metrics_in(const std::string& file) {
    std::ifstream stream{file};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    std::set<std::string> names;
    const std::regex name{"varve_[a-z_]+"};
    for (std::sregex_iterator one{text.begin(), text.end(), name}, end; one != end; ++one) {
        const std::string found = one->str();
        names.insert(found.substr(0, found.rfind("_bucket")));
    }
    return names;
}

TEST(PrometheusFiles, ask_for_metrics_that_there_are) {
    testing::ManualWorld world;
    Application bank{open("memory:"), world.options()};
    std::set<std::string> all;
    for (const Metric& metric : bank.telemetry()) all.insert(metric.name);
    for (const char* const file : {"/alerts.yml", "/dashboard.json"}) {
        const std::set<std::string> used = metrics_in(std::string{VARVE_PROMETHEUS_FOLDER} + file);
        EXPECT_GE(used.size(), 10U) << file;
        for (const std::string& name : used) EXPECT_TRUE(all.contains(name)) << file << " asks for " << name;
    }
}

TEST(PrometheusFiles, have_alerts_that_come_when_they_should_and_only_then) {
    const TemporaryFolder folder{"alerts"};
    std::filesystem::copy(std::string{VARVE_PROMETHEUS_FOLDER} + "/alerts.yml", folder.path());
    std::filesystem::copy(VARVE_ALERTS_TEST, folder.path());
    const auto [said, status] = run(promtool() + " test rules '" + (folder.path() / "alerts_test.yml").string() + "'");
    EXPECT_EQ(status, 0) << said;
    EXPECT_NE(said.find("SUCCESS"), std::string::npos) << said;
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
