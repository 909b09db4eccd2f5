#pragma once

#include "check.h"
#include "payments.h"

#include <functional>
#include <optional>
#include <string>

namespace bank {

/// Processes pay at once from one store, and another one sums up what they pay, while they are killed one after
/// another; then the books are checked.
struct DemoPlan {
    std::string program;  ///< the path of the bank's program, which the processes run
    std::string store;    ///< a URL that several processes can open
    std::string strategy = "protocol";
    Load load = {.workers = 4, .transfers = 20'000};  ///< of all processes; the workers are threads of each
    std::size_t processes = 4;
    std::size_t kills = 12;
    std::chrono::milliseconds lease{1000};
    std::vector<std::string> arguments = {};  ///< of each process, besides those that say what it does
    varve::Runtime runtime = {};
    /// Called now and then while they pay, with how many transfers have ended.
    std::function<void(std::size_t)> watch = [](std::size_t) {};
};

/// What became of the transfers of one kind.
struct Fates {
    std::size_t whole = 0;
    std::size_t absent = 0;
    std::size_t half = 0;  ///< must stay 0

    void count(const Audit& audit, const std::string& transfer);
    std::size_t total() const { return whole + absent + half; }
};

struct DemoResult {
    double seconds = 0;     ///< of the payments
    bool natively = false;  ///< the store's own transactions carried it
    std::size_t kills = 0;
    std::size_t kills_while_summing = 0;  ///< of these: of the process that sums up
    std::size_t failures = 0;             ///< processes that ended because the store did not answer, and were replaced
    Figures figures = {};
    Recoveries recoveries = {};
    Cents before = 0;
    Cents after = 0;
    Fates acknowledged = {};  ///< told to be committed: all must be whole
    Fates refused = {};       ///< told to be rejected or given up: all must be absent
    Fates cut_off = {};       ///< begun by a process that was killed before it told how they ended
    Audit audit = {};

    bool holds() const;
};

/// Throws varve::ConfigError if there are accounts already, std::runtime_error if a process fails by itself, and
/// Interrupted on SIGINT or SIGTERM; no process is left behind.
DemoResult run_demo(const DemoPlan& plan);

struct Interrupted {
    int signal;
    std::size_t ended;  ///< transfers, until then
    std::size_t kills;
};

}  // namespace bank
