#include "alternator.h"

#include "answers.h"

#include <varve/core/error.h>

#include <optional>

namespace varve::dynamodb {
namespace {

/// nullopt if neither the table nor the node tells.
std::optional<std::string> write_isolation(Client& client, const Table& table, std::string_view arn) {
    const Reply tags = client.send(list_tags(table, arn));
    if (const auto* done = std::get_if<Done>(&tags)) {
        if (auto mode = parse_tag(done->answer, "system:write_isolation")) return mode;
    }
    const Reply setting = client.send(alternator_setting("alternator_write_isolation"));
    if (const auto* done = std::get_if<Done>(&setting)) return parse_alternator_setting(done->answer);
    return std::nullopt;
}

}  // namespace

bool is_alternator(std::string_view arn) {
    return arn.starts_with("arn:scylla:alternator:");
}

void check_write_isolation(Client& client, const Table& table, std::string_view arn, Log& log) {
    const std::optional<std::string> mode = write_isolation(client, table, arn);
    // Each mode has three names: its first letter, its first word, all of it.
    const char first = mode && !mode->empty() ? mode->front() : '?';
    if (first == 'a' || first == 'o') return;
    const std::string advice =
        "tag it with system:write_isolation=always_use_lwt, or start the nodes with "
        "--alternator-write-isolation always_use_lwt";
    if (first == 'u' || first == 'f') {
        throw ConfigError("table '" + table.name + "' has the write isolation '" + client.quotable(*mode) +
                          "', under which conditional "
                          "writes are " +
                          (first == 'u' ? "not atomic and data are lost" : "refused") + "; " + advice);
    }
    log.write(LogLevel::warning, "Alternator does not tell the write isolation of table '" + table.name +
                                     "'; if it is not known to be always_use_lwt or only_rmw_uses_lwt, " + advice);
}

}  // namespace varve::dynamodb
