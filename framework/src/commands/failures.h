#pragma once

#include <varve/core/error.h>

#include <exception>
#include <string>

// What becomes of an exception that ends several commands, or one of several.

namespace varve::detail {

/// Each command's failure is thrown again and let go by a thread of its own, which must not share it with others. What
/// is not exactly one of the framework's errors cannot be made again: it is shared.
std::exception_ptr one_more_of(const std::exception_ptr& failure);

/// For a command that was rejected on what is not known to be so. Null if there is no memory to say it: then it is in
/// doubt with the others, which is no untruth.
std::exception_ptr unavailable_beside(const InDoubtError& error) noexcept;

/// Inside a handler: what the exception says that it handles, as far as it can be stored beside an event: valid text,
/// and not too long.
std::string storable_cause();

/// Whether it may be over at the next attempt, or is not known.
bool concerns_the_store(const std::exception_ptr& failure);

}  // namespace varve::detail
