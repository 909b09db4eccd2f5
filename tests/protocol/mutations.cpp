#include "core/assert.h"
#include "protocol/cluster.h"
#include "protocol/planted_faults.h"

#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

/// Proves that the storm finds faults: plants one after the other in the protocol's own code, and storms until one
/// seed's judgement is bad. `mutations [NAME]` prints fault, seed, and what caught it; fails if one is not found.
namespace varve {

/// An invariant that a fault breaks is what its process ends with: a finding as any other.
void detail::assertion_failed(const char*, int, const char* sentence) {
    throw std::logic_error(std::string{"it does not hold that "} + sentence);
}

namespace protocol {
namespace {

constexpr std::uint64_t seeds_max = 200;

std::string_view running;

/// What the storm of one seed finds with a fault; empty: nothing.
std::string violation(std::optional<PlantedFault> fault, std::uint64_t seed) {
    plant(fault);
    Settings settings{seed};
    settings.commands *= 2;  // more of what one fault needs to show within few seeds
    const Result result = simulate(settings);
    return result.violations.empty() ? "" : result.violations.front().substr(0, result.violations.front().find('\n'));
}

/// The first seed that finds it; 0: none. What is found without the fault, too, is no proof.
std::uint64_t find(PlantedFault fault, std::string& caught_by) {
    for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
        caught_by = violation(fault, seed);
        if (caught_by.empty()) continue;
        if (const std::string sound = violation({}, seed); !sound.empty()) {
            caught_by = "seed " + std::to_string(seed) + " finds without any fault planted: " + sound;
            return 0;
        }
        return seed;
    }
    return 0;
}

/// Whether each of them is found.
bool run(const std::vector<PlantedFault>& faults) {
    bool all_found = true;
    for (const PlantedFault fault : faults) {
        running = name_of(fault);
        std::string caught_by;
        const std::uint64_t seed = find(fault, caught_by);
        all_found = all_found && seed > 0;
        std::cout << std::left << std::setw(58) << running << std::right << std::setw(4)
                  << (seed > 0 ? std::to_string(seed) : "none") << "  " << caught_by.substr(0, 110) << std::endl;
    }
    return all_found;
}

}  // namespace
}  // namespace protocol
}  // namespace varve

int main(int argc, char** argv) {
    using namespace varve::protocol;
    std::set_terminate([] {
        std::cout << running << ": the process was terminated" << std::endl;
        std::abort();
    });
    std::vector<varve::PlantedFault> faults = all_planted_faults();
    if (argc > 1) std::erase_if(faults, [&](const varve::PlantedFault fault) { return name_of(fault) != argv[1]; });
    if (faults.empty()) {
        std::cerr << "there is no fault '" << argv[1] << "'; there are:\n";
        for (const varve::PlantedFault fault : all_planted_faults()) std::cerr << "  " << name_of(fault) << '\n';
        return 2;
    }
    return run(faults) ? 0 : 1;
}
