#pragma once

#include "transactions/coordinator.h"

#include <varve/core/error.h>
#include <varve/core/retry.h>

#include <algorithm>
#include <optional>

namespace varve::transactions {

/// What is read is asked for again where the store does not answer, for as long as a write would be: for
/// `answer_time_max`, at most until `until`. One lost answer more or less must not end a command. `read` may be called
/// any number of times. Errors: those of the last one.
template <class Read>
auto read_patiently(Coordinator& coordinator, SteadyTime until, const Read& read) -> decltype(read()) {
    std::optional<Backoff> backoff;
    for (;;) {
        try {
            return read();
        } catch (const UnavailableError& error) {
            if (!error.retryable()) throw;
            if (!backoff) {
                const Duration left = until - coordinator.runtime().clock.get().steady_now();
                backoff.emplace(RetryPolicy::waiting(std::min(coordinator.options().answer_time_max, left)),
                                coordinator.runtime());
            }
            if (!backoff->next()) throw;
        }
    }
}

}  // namespace varve::transactions
