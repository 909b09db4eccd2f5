#pragma once

#include "transactions/settler.h"
#include "transactions/sweeper_source.h"
#include "transactions/tombstones.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace varve::transactions {

/// Scans the tables, segment by segment. Each scan begins at one drawn at random, so that several sweepers are at
/// different places. It keeps nothing in the store.
class Sweeper::Scans final : public Source {
  public:
    Scans(Coordinator& coordinator, std::vector<std::string> tables, const ScanOptions& options);
    std::size_t sweep() override;
    bool is_through() const override { return has_scanned_ && segments_.empty(); }

  private:
    /// One segment of one table that is still to be read.
    struct Segment {
        std::string table;
        std::uint32_t number;
        std::optional<std::string> next = {};  ///< where to read on
    };

    struct Met {
        std::size_t bytes;
        SteadyTime at;
    };

    void read_pages();
    void begin();
    void read_page(Segment& segment, SteadyTime now);
    void settle_due();
    /// What is committed and not in the log may lack a bell, since its writer died: rings one.
    void announce(const std::vector<store::Record>& slots);

    Coordinator& coordinator_;
    Settler settler_;
    Tombstones tombstones_;
    const std::vector<std::string> tables_;
    const ScanOptions options_;
    std::vector<Segment> segments_;  // of the scan that is running
    std::map<store::Key, Met> unsettled_;
    bool has_scanned_ = false;  // once at least
    SteadyTime next_scan_;
    SteadyTime next_page_;
    SteadyTime last_sweep_;
};

}  // namespace varve::transactions
