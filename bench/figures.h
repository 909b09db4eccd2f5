#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// One measured rate, or another quantity, beside that of the raw store doing the least it could, both from this run.
struct Figure {
    std::string name;
    std::string unit;  ///< of both rates, "commands/s"
    double rate = 0;
    double raw_rate = 0;
    std::string raw;  ///< what the raw rate is of

    double ratio() const { return raw_rate > 0 ? rate / raw_rate : 0; }
};

/// How long each rate is measured, and which figures are wanted.
struct Plan {
    std::chrono::milliseconds time{1000};
    std::string filter;            ///< only figures whose name has this in it
    std::filesystem::path folder;  ///< for files of the benchmarks' own

    bool wants(std::string_view name) const { return name.find(filter) != std::string_view::npos; }
};

/// Runs `operation(thread, i)` with i = 0, 1, 2 … in `threads` threads for the plan's time; operations per second.
/// An operation that does several things at once returns how many.
double rate(const Plan& plan, unsigned threads, const std::function<int(unsigned thread, long i)>& operation);

/// How long `work` takes.
double seconds(const std::function<void()>& work);

/// Megabytes that this process has more in memory, at their most, while it does `work`.
double megabytes_at_peak(const std::function<void()>& work);

/// Measures the two of a figure in turn, three times, and keeps each one's median: machines drift.
void measure(Figure& figure, const std::function<double()>& framework, const std::function<double()>& raw);

std::vector<Figure> commands(const Plan& plan);
std::vector<Figure> following(const Plan& plan);
std::vector<Figure> hot_aggregates(const Plan& plan);
std::vector<Figure> hot_transfers(const Plan& plan);
std::vector<Figure> imports(const Plan& plan);
std::vector<Figure> loads(const Plan& plan);
std::vector<Figure> processes(const Plan& plan);
std::vector<Figure> transfers(const Plan& plan);
/// A follower that finds so many slots in the store at `url`, which is new.
Figure catch_up_at(const Plan& plan, const std::string& name, int slots, const std::string& url);
/// None without npm, which installs the server.
std::vector<Figure> dynamodb(const Plan& plan);
std::vector<Figure> dynamodb_answers(const Plan& plan);
/// None without a server's programs.
std::vector<Figure> postgres(const Plan& plan);

}  // namespace bench
