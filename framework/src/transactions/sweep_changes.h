#pragma once

#include "transactions/settler.h"
#include "transactions/sweeper_source.h"
#include "transactions/tombstones.h"

#include <deque>
#include <string>
#include <vector>

namespace varve::transactions {

/// Follows the store's order of changes, and saves how far everything is settled, so that a new one goes on from there.
class Sweeper::Changes final : public Source {
  public:
    Changes(Coordinator& coordinator, std::vector<std::string> tables);
    std::size_t sweep() override;
    bool is_through() const override { return is_through_; }

  private:
    /// Something claimed, or a commit whose rows may not be in place, as met at a position.
    struct Met {
        store::Position position;
        store::Key key;
        std::size_t bytes;
        SteadyTime due;
    };
    /// A tombstone whose expiry no clock that agrees with this one can have written.
    struct Overdated {
        store::Position position;
        store::Key key;
        Image tombstone;
        SteadyTime due;
    };
    struct Table {
        std::string name;
        store::Position seen = 0;        // changes read so far
        store::Position collected = 0;   // tombstones looked at so far
        store::Position saved_seen = 0;  // in the system table
        store::Position saved_collected = 0;
        std::deque<Met> unsettled = {};        // in the order of positions
        std::deque<Overdated> overdated = {};  // in the order of positions
    };

    /// Whether it has come to the end.
    bool read_changes(Table& table);
    void settle_due(Table& table);
    void collect_tombstones(Table& table);
    /// Whether it could put this one aside, to be removed when it has been seen for a whole retention: a clock that was
    /// far ahead keeps neither it nor those behind it for longer.
    bool put_aside(Table& table, const store::Change& change, const Image& tombstone);
    void collect_overdated(Table& table);
    void save(const store::Key& key, store::Position reached, store::Position& saved);

    Coordinator& coordinator_;
    Settler settler_;
    Tombstones tombstones_;
    std::vector<Table> tables_;
    bool is_through_ = false;
};

}  // namespace varve::transactions
