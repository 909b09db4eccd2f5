#pragma once

#include "transactions/coordinator.h"
#include "transactions/row.h"

#include <optional>
#include <span>

namespace varve::transactions {

/// Finds a sweeper the tombstones that may go, and removes them.
///
/// Threads: as its sweeper.
class Tombstones {
  public:
    explicit Tombstones(Coordinator& coordinator) : coordinator_(coordinator) {}

    /// The image of a row that is a tombstone; nullopt: it is none, or cannot be read, which is logged.
    std::optional<Image> read(const store::Record& record);
    /// Whether its retention is over.
    bool is_over(const Image& tombstone) const;
    /// Sends what `remove_tombstone` gave. False if one of them was not answered. Errors: those of the store.
    bool remove(std::span<const store::Write> removals);

  private:
    Coordinator& coordinator_;
};

}  // namespace varve::transactions
