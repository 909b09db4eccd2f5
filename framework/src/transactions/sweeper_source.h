#pragma once

#include "transactions/sweeper.h"

namespace varve::transactions {

/// Where a sweeper learns what may have to be settled. A Settler settles it.
class Sweeper::Source {
  public:
    Source() = default;
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    /// As Sweeper::sweep and Sweeper::is_through.
    virtual std::size_t sweep() = 0;
    virtual bool is_through() const = 0;

  protected:
    static constexpr std::size_t page_size = 500;
    static constexpr std::size_t unsettled_max = 10'000;
    static constexpr int pages_per_sweep_max = 20;  // so that a long history does not keep a sweep from ending
};

}  // namespace varve::transactions
