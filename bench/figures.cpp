#include "figures.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <malloc.h>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Kilobytes of this process in memory: now, or at most since that was forgotten.
double resident(const char* which) {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(which)) return std::stod(line.substr(line.find(':') + 1));
    }
    throw std::runtime_error("no /proc/self/status");
}

}  // namespace

double rate(const Plan& plan, unsigned threads, const std::function<int(unsigned, long)>& operation) {
    std::atomic<bool> stop{false};
    std::atomic<long> done{0};
    const auto begin = Clock::now();
    {
        std::vector<std::jthread> workers;
        for (unsigned t = 0; t < threads; ++t) {
            workers.emplace_back([&, t] {
                long mine = 0;
                for (long i = 0; !stop.load(std::memory_order_relaxed); ++i) mine += operation(t, i);
                done += mine;
            });
        }
        std::this_thread::sleep_for(plan.time);
        stop = true;
    }
    return static_cast<double>(done.load()) / since(begin);
}

double seconds(const std::function<void()>& work) {
    const auto begin = Clock::now();
    work();
    return since(begin);
}

double megabytes_at_peak(const std::function<void()>& work) {
    malloc_trim(0);  // what was freed counts as ours until then
    std::ofstream{"/proc/self/clear_refs"} << "5";
    const double before = resident("VmRSS");
    work();
    return (resident("VmHWM") - before) / 1024;
}

void measure(Figure& figure, const std::function<double()>& framework, const std::function<double()>& raw) {
    std::array<double, 3> ours{};
    std::array<double, 3> theirs{};
    for (std::size_t i = 0; i < 3; ++i) {
        ours[i] = framework();
        theirs[i] = raw();
    }
    std::ranges::sort(ours);
    std::ranges::sort(theirs);
    figure.rate = ours[1];
    figure.raw_rate = theirs[1];
}

}  // namespace bench
