#pragma once

#include "payments.h"

#include <optional>
#include <string>

namespace bank {

/// A line that `bank pay --tell` writes to its standard output for the process that started it, as JSON: a transfer
/// begins, or has ended. A line is written at once and whole, so that what a killed process had told still counts.
struct Told {
    std::optional<std::string> begun = {};  ///< the transfer's id
    std::optional<std::string> ended = {};  ///< the transfer's id
    std::optional<Ending> ending = {};      ///< with `ended`, as are all the following
    std::optional<std::int64_t> took_us = {};
    std::optional<unsigned> attempts = {};
    std::optional<Recoveries> recoveries = {};  ///< of the process so far
};

}  // namespace bank
