#pragma once

#include "list_append.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace varve::checkers {

/// Says what is wrong and where: `line 3, column 7: …` or `history 2 "transfers", transaction 5 (id 7), operation 1:
/// …`.
class BadHistory : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Reads recorded histories:
///
///     histories   = [ history, … ]
///     history     = {"name": string, "txns": [ transaction, … ]}
///     transaction = {"id": scalar, "process": scalar, "invoke": integer | null, "complete": integer | null,
///                    "status": "ok" | "fail" | "info", "ops": [ operation, … ]}
///     operation   = ["append", scalar, scalar] | ["r", scalar, [scalar, …] | null]        (key; value or list)
///     scalar      = integer | string                                       (1 and "1" are two different ones)
///
/// null as a read's list: the answer never came; not for status ok. Other members are skipped. Ids are unique, and
/// nothing completes before it was invoked. Throws BadHistory.
std::vector<History> parse_histories(std::string_view json);

}  // namespace varve::checkers
