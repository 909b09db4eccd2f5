#pragma once

#include "account.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace bank {

enum class Distribution { zipf, uniform };
const char* to_string(Distribution distribution);

/// Draws account numbers 0 … count - 1. Zipf: number k is drawn in proportion to 1 / (k + 1)^theta, so that a few are
/// hot.
///
/// Threads: immutable.
class Popularity {
  public:
    Popularity(Distribution distribution, std::size_t count, double theta);
    std::size_t draw(std::mt19937_64& random) const;

  private:
    std::vector<double> cumulated_;
};

/// A load of transfers between random accounts, in a closed loop: each worker begins its next transfer when the last
/// one is through.
struct Load {
    std::size_t workers = 8;
    std::size_t transfers = 10'000;
    std::size_t accounts = 1'000;
    Distribution distribution = Distribution::zipf;
    double theta = 0.99;
    Cents cents_max = 100'00;  ///< of one transfer; at least 0.01
    Cents opening = 1'000'00;  ///< deposited to accounts that are opened for the load
    std::uint64_t seed = 0;    ///< 0: another one each time
};

/// How one transfer ended.
enum class Ending { committed, rejected, gave_up, in_doubt };

/// What the load tells about each transfer while it runs; called by several threads at once.
struct Begun {
    std::string id;
};
struct Ended {
    std::string id;
    Ending ending;
    std::chrono::microseconds took;
    unsigned attempts;
};
struct Observer {
    std::function<void(const Begun&)> begun = [](const Begun&) {};
    std::function<void(const Ended&)> ended = [](const Ended&) {};
    std::function<bool()> is_enough = [] { return false; };  ///< asked before each transfer: whether to stop here
};

/// What others left and this process settled, and how often it lost.
struct Recoveries {
    std::uint64_t conflicts = 0;  ///< attempts that lost against others
    std::uint64_t fenced = 0;     ///< transactions of others that were ended
    std::uint64_t undone = 0;     ///< claims of others that were cleared
    std::uint64_t finalised = 0;  ///< claims of others that were put into place
    std::uint64_t swept = 0;      ///< of all these: found by a sweeper

    Recoveries& operator+=(const Recoveries& other);
};
Recoveries recoveries(varve::Application& bank);

/// The figures of a load.
struct Figures {
    std::size_t committed = 0;
    std::size_t rejected = 0;  ///< by the domain: not enough money
    std::size_t gave_up = 0;   ///< lost against others until the retry policy was exhausted; nothing happened
    std::size_t in_doubt = 0;
    std::size_t retries = 0;
    std::vector<std::chrono::microseconds> latencies = {};  ///< of committed ones; sorted by finish()

    void add(const Ended& ended);
    void finish();
    std::size_t total() const { return committed + rejected + gave_up + in_doubt; }
    /// The latency that a share of the transfers did not exceed, e.g. 0.99. 0 if there were none.
    std::chrono::microseconds percentile(double share) const;
};

/// "a000042".
std::string account_id(std::size_t number);

/// Opens those of the accounts that are not there yet, `load.workers` at a time.
void open_accounts(varve::Application& bank, const Load& load);

/// Runs the load on accounts that are open. Throws varve::InvalidError for a load that cannot be run. The store's
/// errors that are no transfer's outcome stop it and are thrown.
Figures pay(varve::Application& bank, const Load& load, const Observer& observer = {});

}  // namespace bank
