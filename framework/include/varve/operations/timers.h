#pragma once

#include <varve/commands/application.h>
#include <varve/processes/parked_timer.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve::operations {

/// A timer that waits for its time, or has failed and is set aside, in whatever program.
struct StoredTimer {
    std::string id;
    std::string follower;  ///< "$process-reminder", "$schedule-order"
    std::string instance;  ///< the id of the process, or aggregate, that it is for
    std::string type;
    Time due;
    std::string error;           ///< why it has failed; empty: it waits
    std::optional<Time> failed;  ///< at the first try
};

/// At most so many, those that are due first; reads all. Errors: those of the store. Threads: any, of both.
///
///     for (const operations::StoredTimer& one : operations::timers(shop))
///         if (!one.error.empty()) operations::drop_timer(shop, one.id);
std::vector<StoredTimer> timers(Application& application, std::size_t timers_max = 10'000);

/// Gives one up for ever, be it waiting or aside. False: there is none of this id. InvalidError for what is no timer's.
bool drop_timer(Application& application, std::string_view id);

}  // namespace varve::operations
