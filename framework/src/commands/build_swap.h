#pragma once

#include "commands/consumer.h"

#include <varve/commands/application.h>

#include <span>

namespace varve::detail {

/// Makes the next build live (B3 in build.h), if it can take all that is left in this one transaction. False: not yet,
/// though it may have come nearer. `next`: what keeps it, one for each partition. Errors: as transact; what
/// the projection throws.
///
///     if (try_to_swap(application, consumers)) …  // readers see its rows from now on
bool try_to_swap(Application& application, std::span<const Consumer> next);

}  // namespace varve::detail
