#pragma once

namespace bank {

/// The program's exit codes; part of its help.
enum ExitCode : int {
    exit_done = 0,
    exit_refused = 1,   ///< rejected by the domain, or a check that does not hold
    exit_usage = 2,     ///< of the command line, the store's URL or its format
    exit_failed = 3,    ///< the store is unavailable, busy, full or damaged: nothing was done
    exit_in_doubt = 4,  ///< nobody knows whether it was done
    exit_unread = 5,    ///< done, but standard output did not take the result
};

}  // namespace bank
