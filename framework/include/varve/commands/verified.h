#pragma once

#include <varve/commands/application.h>
#include <varve/rows/rows.h>

#include <cstdint>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

namespace varve {

/// A row that is not what the events say.
struct RowDifference {
    std::string table;
    RowKey key;
    std::optional<std::string> stored;    ///< JSON text; nullopt: there is no such row
    std::optional<std::string> expected;  ///< what the projection makes of the events; nullopt: there should be none
};

/// What Application::verify has found.
struct Verified {
    static constexpr std::size_t differences_max = 1000;

    std::uint64_t position = 0;              ///< the events up to there have been folded, and of some partitions more
    std::int64_t events = 0;                 ///< of those that it was asked about
    std::int64_t rows = 0;                   ///< that these have made
    std::vector<RowDifference> differences;  ///< by table and key; verify stops at differences_max
};

template <class Projection>
Verified Application::verify(std::size_t bytes_max) {
    return verify(stored_name<Projection>(), &typeid(Projection), bytes_max);
}

}  // namespace varve
