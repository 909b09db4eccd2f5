#include "protocol/cluster.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>

/// Proves that the storm finds faults: plants one after the other in the protocol's own code, and storms until one
/// seed's judgement is bad. `mutations [NAME]` prints fault, seed, and what caught it; fails if one is not found.
namespace varve {
namespace {
const char* active = "";
}

namespace transactions {
bool mutant(const char* name) {
    return std::strcmp(active, name) == 0;
}
}  // namespace transactions

namespace protocol {
namespace {

constexpr std::uint64_t seeds_max = 200;

constexpr const char* all_mutations[] = {
    "undo without fencing",
    "a void that does not raise the epoch",
    "a void of any epoch is accepted",
    "a slot's undo and finalise do not check the transaction",
    "a row's undo and finalise do not check the transaction",
    "one id for all attempts",
    "a dirty reader",
    "a reader ignores committed intents",
    "a snapshot of one round",
    "a snapshot compares the raw revisions",
    "to build on what is not finalised",
    "a commit without an answer to every prepare",
    "no validation",
    "validation before the prepares",
    "validation overlooks intents",
    "the primary is not held",
    "the primary's epoch changes after the prepares",
    "a lost answer is taken for an abort",
    "no tombstones",
    "done before all is finalised",
    "what a native transaction read is not checked",
    "a command id is looked up and not written",
    "effects are lost where the primary is the transaction's own",
    "what is not finalised is remembered as settled",
    "what rests on memory alone is not validated",
    "a command forgets the lock that it is fenced by",
    "only a row's last writer is recognised",
    "a row remembers its last writer only",
    "a row is not fenced when its writer gives up",
};

/// What the storm of one seed finds with a mutation; empty: nothing.
std::string violation(const char* mutation, std::uint64_t seed) {
    active = mutation;
    Settings settings{seed};
    settings.commands *= 2;  // more of what one fault needs to show within few seeds
    const Result result = simulate(settings);
    return result.violations.empty() ? "" : result.violations.front().substr(0, result.violations.front().find('\n'));
}

/// The first seed that finds it; 0: none. What is found without the mutation, too, is no proof.
std::uint64_t find(const char* mutation, std::string& caught_by) {
    for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
        caught_by = violation(mutation, seed);
        if (caught_by.empty()) continue;
        if (const std::string sound = violation("", seed); !sound.empty()) {
            caught_by = "seed " + std::to_string(seed) + " finds without any fault planted: " + sound;
            return 0;
        }
        return seed;
    }
    return 0;
}

}  // namespace
}  // namespace protocol
}  // namespace varve

int main(int argc, char** argv) {
    std::set_terminate([] {
        std::cout << varve::active << ": the process was terminated" << std::endl;
        std::abort();
    });
    bool all_found = true;
    for (const char* mutation : varve::protocol::all_mutations) {
        if (argc > 1 && std::strcmp(argv[1], mutation) != 0) continue;
        std::string caught_by;
        const std::uint64_t seed = varve::protocol::find(mutation, caught_by);
        all_found = all_found && seed > 0;
        std::cout << std::left << std::setw(58) << mutation << std::right << std::setw(4)
                  << (seed > 0 ? std::to_string(seed) : "none") << "  " << caught_by.substr(0, 110) << std::endl;
    }
    return all_found ? 0 : 1;
}
