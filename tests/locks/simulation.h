#pragma once

#include <varve/testing/faulty_store.h>

#include <cstdint>
#include <string>
#include <vector>

namespace varve::lock_simulation {

/// What a seed decides before anything runs.
struct Settings {
    explicit Settings(std::uint64_t seed);
    /// Nothing fails, nobody sleeps, all clocks agree.
    static Settings in_calm(std::uint64_t seed);

    std::uint64_t seed;
    unsigned processes = 30;
    unsigned sections = 2;  ///< of each process
    Duration time_to_live = std::chrono::seconds{1};
    testing::FaultRates faults = {};
    double stop = 0;   ///< probabilities, at each moment of each request
    double pause = 0;  ///< of up to three times the time to live
    double jump = 0;   ///< of the process's clock
    Duration clock_offset_max{};
    bool fenced = true;
    bool calm = false;  ///< nothing fails: the order is judged, too
    std::uint64_t steps_max = 2'000'000;
};

/// What became of one seed.
struct Result {
    std::vector<std::string> violations;
    std::uint64_t trace = 0;
    std::uint64_t acquired = 0;
    std::uint64_t gave_up = 0;
    std::uint64_t lost = 0;
    std::uint64_t cleaned = 0;
    std::uint64_t refused = 0;  ///< fenced commits of holders that did not know
    std::uint64_t committed = 0;
    std::uint64_t stopped = 0;
    std::uint64_t requests = 0;
};

/// Thirty processes that want one lock, each with a clock, a network and a heartbeat of its own; inside, each appends
/// to one stream by fenced commands. Judged: what they left in the stream, and every write to the lock as the store saw
/// it.
Result simulate(const Settings& settings);

}  // namespace varve::lock_simulation
