#pragma once

#include "protocol/cells.h"
#include "protocol/following.h"
#include "protocol/record.h"
#include "protocol/workload.h"

#include <varve/testing/simulation.h>
#include <varve/transactions/options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace varve::protocol {

/// All that a seed decides before anything runs.
struct Settings {
    explicit Settings(std::uint64_t seed);

    std::uint64_t seed;
    Scale scale;
    std::uint64_t clients;
    std::uint64_t sweepers;
    std::uint64_t sequencers = 0;     ///< where the store keeps no order of changes
    unsigned shards = 1;              ///< in which bells stand, in the beginning
    unsigned shards_later = 0;        ///< to which some processes raise them; 0: nobody does
    std::vector<Followed> followers;  ///< what each process that follows does
    std::uint64_t clerks = 0;         ///< processes that run process managers, timers and what was scheduled
    std::size_t clerk_partitions = 1;
    bool clerks_are_broken = false;  ///< at some events and timers, until all is quiet
    bool places_are_lost = false;    ///< of process managers, in the feed
    double rebuild = 0;              ///< probability, at each turn of who keeps rows that can be made anew
    unsigned commands;               ///< of each client
    std::uint64_t think_us_max;      ///< between two of them
    transactions::Options transactions;
    Escalation escalation;
    testing::Troubles troubles;
    double no_atomic_writes = 0;  ///< probability, of each process
    std::size_t atomic_writes_max = SIZE_MAX;
    bool no_changes = false;  ///< sweepers have to scan
    std::size_t item_bytes_max = SIZE_MAX;
    bool is_checked = false;              ///< somebody checks the store all the time
    std::uint64_t steps_max = 3'000'000;  ///< of the scheduler; more is an endless loop
};

/// What became of one seed.
struct Result {
    std::vector<std::string> violations;  ///< empty: all is well
    std::uint64_t trace = 0;
    Record record;
    Cells cells;
    testing::FaultCounts faults;
    std::uint64_t requests = 0;
    Duration simulated{};
    bool stops = false;  ///< processes were stopped in it
};

/// Runs a cluster over one memory store: clients, sweepers and followers as simulated processes, every fault that the
/// seed names; then a quiet time in which everything must settle within 120 simulated seconds, and whoever follows come
/// to the end; then judges what is left.
Result simulate(const Settings& settings);

}  // namespace varve::protocol
