#pragma once

#include <varve/store/item_store.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// One transaction; its owner meets a fault at every single request; then somebody else recovers, and meets a fault at
/// every single request of that; then the sweeper. Everything is enumerated, nothing is random. Violations of Q1 to Q5,
/// of what a reader may see and of what callers were told are failures of the GoogleTest that runs.
namespace varve::protocol {

/// What a transaction has to do with one stream, row or range.
enum class Kind { slot, new_slot, insert, update, erase, reinsert, read_head, read_row, read_range };

struct Scenario {
    const char* name;
    std::vector<Kind> kinds;
};

/// In the order of their sizes.
const std::vector<Scenario>& scenarios();

/// Where the worlds' stores come from.
class Stores {
  public:
    virtual ~Stores() = default;
    virtual std::shared_ptr<store::ItemStore> next() = 0;
};

struct Counts {
    std::uint64_t runs = 0;
    std::uint64_t committed = 0;
    std::uint64_t aborted = 0;
    std::uint64_t points = 0;
};

/// How much of the grid.
enum class Extent {
    everything,  ///< every request × every fault × everybody who may recover; and every request of whoever does
    what_differs_most,  ///< at every request, the faults and recoverers that differ most
    sweeping,           ///< every request × every fault, left to the sweeper, which ends at every request, too
    each_point,         ///< at every request an end of the owner, and one other fault; all kinds in turn
};

/// Adds to `counts`. Ends early once the test has failed.
void run_crash_grid(const Scenario& scenario, Stores& stores, Extent extent, Counts& counts);

/// One line on standard output. `store`: "memory".
void print(const std::string& store, const Counts& counts);

}  // namespace varve::protocol
