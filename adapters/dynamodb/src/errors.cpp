#include "errors.h"

#include <algorithm>
#include <array>

namespace varve::dynamodb {
namespace {

constexpr std::string_view slow_down =
    "the table's or the account's throughput is used up; use on-demand capacity or raise the limits";
constexpr std::string_view wrong_keys = "check the access key, its secret and the region";
constexpr std::string_view unsigned_request =
    "the signature's headers did not arrive as they were sent; does a proxy change them, or does the server want "
    "others?";

constexpr auto rules = std::to_array<ErrorRule>({
    {"ConditionalCheckFailedException", Course::refused, ErrorKind::conflict, "", false},

    {"TransactionConflictException", Course::busy, ErrorKind::unavailable, "others kept writing the item", false},
    {"ReplicatedWriteConflictException", Course::busy, ErrorKind::unavailable, "write to the table in one region only",
     false},
    {"ProvisionedThroughputExceededException", Course::retry, ErrorKind::unavailable, slow_down, false},
    {"RequestLimitExceeded", Course::retry, ErrorKind::unavailable, slow_down, false},
    {"ThrottlingException", Course::retry, ErrorKind::unavailable, slow_down, false},
    {"LimitExceededException", Course::retry, ErrorKind::unavailable,
     "too many tables are being created or changed at once", false},

    {"InternalServerError", Course::in_doubt, ErrorKind::unavailable, "", false},
    {"InternalFailure", Course::in_doubt, ErrorKind::unavailable, "", false},
    {"ServiceUnavailable", Course::in_doubt, ErrorKind::unavailable, "", false},
    {"ServiceUnavailableException", Course::in_doubt, ErrorKind::unavailable, "", false},

    {"InvalidSignatureException", Course::clock, ErrorKind::config, wrong_keys, true},
    {"RequestExpired", Course::clock, ErrorKind::config, "set this machine's clock", true},
    {"RequestTimeTooSkewed", Course::clock, ErrorKind::config, "set this machine's clock", true},
    {"ExpiredTokenException", Course::credentials, ErrorKind::config, "the temporary credentials are over; renew them",
     true},

    {"UnrecognizedClientException", Course::fatal, ErrorKind::config, wrong_keys, true},
    {"IncompleteSignatureException", Course::fatal, ErrorKind::config, unsigned_request, true},
    {"MissingAuthenticationTokenException", Course::fatal, ErrorKind::config, unsigned_request, true},
    {"AccessDeniedException", Course::fatal, ErrorKind::config, "allow this action in the user's or role's policy",
     false},
    {"ResourceInUseException", Course::fatal, ErrorKind::unavailable, "the table is being created or changed", false},
    {"ResourceNotFoundException", Course::fatal, ErrorKind::config,
     "the table is not there; was it deleted, or does the region or the prefix name others?", false},
    {"UnknownOperationException", Course::fatal, ErrorKind::config, "the server does not know this operation", false},
    {"ItemCollectionSizeLimitExceededException", Course::fatal, ErrorKind::storage_full,
     "a partition of a table with a local index holds 10 GB; remove the index", false},
    {"SerializationException", Course::fatal, ErrorKind::invalid, "", false},
    {"ValidationException", Course::fatal, ErrorKind::invalid, "", false},
});

constexpr ErrorRule undocumented_failure{"", Course::in_doubt, ErrorKind::unavailable, "", false};
constexpr ErrorRule undocumented_throttling{"", Course::retry, ErrorKind::unavailable, slow_down, false};
constexpr ErrorRule undocumented_limit{"", Course::fatal, ErrorKind::invalid, "the request is too large for the server",
                                       false};
constexpr ErrorRule undocumented_refusal{"", Course::fatal, ErrorKind::config,
                                         "is the server at this address one of DynamoDB's protocol?", false};

}  // namespace

std::string_view to_string(Course course) {
    switch (course) {
        case Course::refused: return "refused";
        case Course::retry: return "retry";
        case Course::busy: return "busy";
        case Course::in_doubt: return "in_doubt";
        case Course::clock: return "clock";
        case Course::credentials: return "credentials";
        case Course::fatal: return "fatal";
    }
    return "unknown";
}

std::span<const ErrorRule> error_rules() {
    return rules;
}

const ErrorRule& rule_for(std::string_view name, int status) {
    const auto found = std::ranges::find(rules, name, &ErrorRule::name);
    if (found != rules.end()) return *found;
    if (status == 429) return undocumented_throttling;
    constexpr int request_timeout = 408;
    if (status == request_timeout) return undocumented_failure;
    constexpr int content_too_large = 413;
    if (status == content_too_large) return undocumented_limit;
    return status >= 400 && status < 500 ? undocumented_refusal : undocumented_failure;
}

}  // namespace varve::dynamodb
