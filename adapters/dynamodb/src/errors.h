#pragma once

#include <varve/core/error.h>

#include <span>
#include <string_view>

namespace varve::dynamodb {

/// What to do about an error of the server's.
enum class Course {
    refused,      ///< a condition did not hold: an answer like others
    retry,        ///< the server cannot now, and certainly has not: again after a pause
    busy,         ///< others are at this item: certainly not applied, again after a pause
    in_doubt,     ///< perhaps applied: reads are sent again, a write's outcome is unknown
    clock,        ///< signed with a wrong time: again, once, with the server's
    credentials,  ///< signed with credentials that are over: again, once, with new ones
    fatal,        ///< no repetition helps
};
/// "in_doubt"
std::string_view to_string(Course course);

struct ErrorRule {
    std::string_view name;
    Course course;
    ErrorKind kind;           ///< of what the caller gets, when it is given up or fatal
    std::string_view advice;  ///< for the message; empty where the server's own says it
    bool tells_secrets;       ///< the server's message may quote signed headers, so that nobody gets to see it
};

/// Each error that DynamoDB and the services before it document, once. README.md shows the same table.
std::span<const ErrorRule> error_rules();

/// The rule for an error by its name, or by the status for one that nobody documented.
const ErrorRule& rule_for(std::string_view name, int status);

}  // namespace varve::dynamodb
