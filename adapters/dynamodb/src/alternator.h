#pragma once

#include "client.h"
#include "table.h"

#include <string_view>

namespace varve::dynamodb {

/// Whether a table's ARN, as a server describes it, is one of ScyllaDB's Alternator.
bool is_alternator(std::string_view arn);

/// Alternator lets each table choose how it isolates writes, by the tag `system:write_isolation`, and else as the
/// node's setting `alternator_write_isolation` says. Throws ConfigError if conditional writes of this table are not
/// atomic, or are refused; logs a warning if the server does not tell.
void check_write_isolation(Client& client, const Table& table, std::string_view arn, Log& log);

}  // namespace varve::dynamodb
