#pragma once

#include "protocol/ledger.h"
#include "protocol/record.h"
#include "protocol/workload.h"

namespace varve::protocol {

/// Everything that must hold when all is quiet, besides what the ledger says by itself: Q2, the bank, the lists, the
/// notes. Reads through `application`. Each line is one violation.
std::vector<std::string> judge_at_rest(Application& application, Ledger& ledger, Record& record, const Scale& scale,
                                       std::int64_t moment);

/// What a check of the store finds, and at rest also what it says is on its way.
enum class Moment { any, at_rest };
std::vector<std::string> judge_by_check(Application& application, Moment moment);

}  // namespace varve::protocol
