#pragma once

#include <varve/commands/application.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

namespace varve::operations {

/// What there is of one type of aggregate: of streams with names that begin with "<aggregate>-".
struct AggregateStats {
    std::int64_t streams = 0;
    std::int64_t slots = 0;
    std::int64_t events = 0;
    std::int64_t bytes = 0;    ///< of slots, as the port counts them
    std::string longest = {};  ///< a stream with the most slots
    std::int64_t longest_slots = 0;
};
struct TableStats {
    std::int64_t items = 0;
    std::int64_t bytes = 0;  ///< as the port counts them
};
struct StoreStats {
    std::map<std::string, AggregateStats> aggregates;  ///< by name; the framework's own streams as "$cmd" and "$tx"
    std::map<std::string, TableStats> tables;          ///< all that varve keeps something in, by name
};

/// Counts what a store holds: reads all of it, and keeps 100 bytes in memory for each stream. `progress`: called with
/// each page, in this thread, with the number of items so far. Ends early, with what it has, when stop is requested.
/// Errors: those of the store. Threads: any.
///
///     std::cout << operations::count(bank).aggregates["account"].streams << " accounts\n";
StoreStats count(Application& application, const std::function<void(std::int64_t items)>& progress = {},
                 const std::stop_token& stop = {});

}  // namespace varve::operations
