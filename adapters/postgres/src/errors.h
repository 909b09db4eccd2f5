#pragma once

#include <varve/core/error.h>

#include <span>
#include <string_view>

namespace varve::postgres {

/// What an error of the server's means to a caller.
struct ErrorRule {
    std::string_view code;  ///< a SQLSTATE, or the two characters of its class
    ErrorKind kind;
    bool repeated;            ///< the store runs the transaction again by itself, a few times
    std::string_view advice;  ///< for the message; empty where the server's own says it
};

/// README.md shows the same table.
std::span<const ErrorRule> error_rules();

/// The rule for a SQLSTATE: its own, its class's, or the last one, for whatever is not in the table.
const ErrorRule& rule_for(std::string_view code);

/// Why there is no connection, from libpq's words: it does not pass on the SQLSTATE of a connection that failed.
ErrorRule rule_for_connecting(std::string_view message);

/// One line, without what libpq and the server add around it.
std::string_view one_line(std::string_view message);

}  // namespace varve::postgres
