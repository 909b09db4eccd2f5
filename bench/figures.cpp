#include "figures.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
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
