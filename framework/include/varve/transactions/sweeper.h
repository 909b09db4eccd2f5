#pragma once

#include <varve/transactions/coordinator.h>

#include <deque>
#include <string>
#include <vector>

namespace varve::transactions {

/// Finishes what owners who died have left: follows the order of changes of the events table and of the tables with
/// rows, looks at what was claimed again one lease later, and settles it; finalises the rows of commits without a done
/// mark; removes tombstones whose retention is over. Nothing is ever skipped; several sweepers at once do no harm.
///
/// Needs a store with ordered changes.
///
/// Threads: one Sweeper belongs to one thread.
class Sweeper {
  public:
    /// `row_tables`: the tables that hold rows; the events table is always swept. InvalidError if the store keeps no
    /// order.
    Sweeper(Coordinator& coordinator, std::vector<std::string> row_tables);

    /// Reads all changes since the last pass and settles what has been lying for a lease. Returns how many slots and
    /// rows it met that are still to be settled.
    std::size_t sweep();

  private:
    /// Something claimed, or a commit not yet marked done, as met at a position.
    struct Met {
        store::Position position;
        store::Key key;
        Time at;
    };
    struct Table {
        std::string name;
        store::Position seen = 0;        // changes read so far
        store::Position collected = 0;   // tombstones looked at so far
        store::Position saved_seen = 0;  // in the system table
        store::Position saved_collected = 0;
        std::deque<Met> unsettled = {};  // in the order of positions
    };

    void read_changes(Table& table);
    void settle(Table& table);
    bool is_settled(const store::Key& key, const std::optional<store::Item>& item);
    bool finish_participants(const store::Key& primary, const Committed& commit);
    void collect_tombstones(Table& table);
    void save(const store::Key& key, store::Position reached, store::Position& saved);

    Coordinator& c_;
    std::vector<Table> tables_;
};

}  // namespace varve::transactions
