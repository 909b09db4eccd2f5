#pragma once

#include "list_append.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

/// The graph half of the list-append checker: given who depends on whom, which classes of cycles are there?
namespace varve::checkers {

enum class EdgeKind : std::uint8_t {
    ww,  ///< overwrote (appended behind) what the other had written
    wr,  ///< read what the other had written
    rw,  ///< read the state before the other's write
    rt,  ///< began after the other had completed
};

struct Dependency {
    std::uint32_t from = 0, to = 0;  ///< transactions
    EdgeKind kind = EdgeKind::ww;
    // For the explanation only:
    std::uint32_t key = 0;
    std::int64_t before = 0, after = 0;  ///< ww: both values; wr: `after` was read; rw: `after` was not
    bool exact = true;                   ///< false: `after` lies somewhere behind, others may come between
};

struct Interval {
    std::optional<std::int64_t> invoke, complete;
};

struct Step {
    std::uint32_t from = 0, to = 0;
    EdgeKind kind = EdgeKind::rt;
    std::uint32_t dependency = 0;  ///< index; means nothing for rt
};
using Cycle = std::vector<Step>;

/// One short simple cycle of each class that occurs. `times` has one entry per transaction. Dependencies of a
/// transaction on itself must not be given; nobody may complete before it began.
std::map<Anomaly, Cycle> find_cycles(const std::vector<Dependency>& dependencies, const std::vector<Interval>& times);

}  // namespace varve::checkers
