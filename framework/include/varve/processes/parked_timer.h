#pragma once

#include <varve/core/clock.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

class Application;

/// A timer of a process, or a scheduled command, that has failed for good when it was due, and is aside until somebody
/// takes it up. Nothing waits for it.
struct ParkedTimer {
    std::string id;        ///< as it was returned when it was set
    std::string instance;  ///< the id of the process, or aggregate, that it is for
    std::string type;      ///< of the timer, or command
    Time due;
    std::string error;  ///< what was thrown, at the last try
    Time since;         ///< the first
};

// `follower`: process_name<P>(), or schedule_name<A>(). Errors of all three: InvalidError if this application has no
// such follower, and from its own handler; those of the store.

std::vector<ParkedTimer> parked_timers(Application& application, std::string_view follower);
/// Fires them once more, in this thread. Returns how many have not failed again. One that is not due yet by this
/// process's clock, since one that was ahead has set it aside, stays where it is.
std::size_t retry_timers(Application& application, std::string_view follower);
/// Gives one of them up for ever. False: it is not among them. InvalidError for what is no timer's id.
bool drop_timer(Application& application, std::string_view follower, std::string_view id);

}  // namespace varve
