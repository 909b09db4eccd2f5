#pragma once

#include "transactions/coordinator.h"

#include <memory>
#include <string>
#include <vector>

namespace varve::transactions {

/// Finishes what owners who died have left: looks at what was claimed again one lease after it has met it, and settles
/// it; removes tombstones whose retention is over. Nothing is ever skipped; several sweepers at once do no harm.
///
/// Where the store keeps an order of changes, a sweeper follows it over the events table and the tables with rows,
/// looks whether the rows of every commit are in place, and costs as much as there are changes. Where it keeps none, a
/// sweeper scans these tables from end to end, again and again, and costs as much as is stored; ScanOptions bound how
/// fast. There it also finalises the rows that commits without a done mark name, in whatever table.
///
/// Every Application has one on a thread of its own; a process that only sweeps looks like this:
///
///     Sweeper sweeper{application.coordinator(), {"balances"}};
///     for (;; clock.sleep_for(500ms)) sweeper.sweep();
///
/// Threads: one Sweeper belongs to one thread.
class Sweeper {
  public:
    /// `row_tables`: the tables that hold rows; the events table is always swept.
    Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables, const ScanOptions& scan = {});
    ~Sweeper();
    Sweeper(const Sweeper&) = delete;
    Sweeper& operator=(const Sweeper&) = delete;

    /// Reads on, as far as there is something new or a scan is due, at most some ten thousand items; settles what has
    /// been lying for a lease. Returns how many slots and rows it met that are still to be settled. Never sleeps: call
    /// it again and again. Errors: those of the store.
    std::size_t sweep();

    /// Whether the last sweep() has come to the end: of the changes, or of a scan. What lay there as it, or that scan,
    /// began has been met.
    bool is_through() const;

  private:
    class Source;
    class Changes;
    class Scans;

    std::unique_ptr<Source> source_;
};

}  // namespace varve::transactions
