#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve::console::serve {

/// A request's target, taken apart before its escapes are undone: a "/" within a name is sent as %2F.
struct Target {
    std::vector<std::string> path;             ///< "/api/streams/a%2Fb" has api, streams and a/b; "/" has none
    std::map<std::string, std::string> query;  ///< by name
};

/// nullopt for what is no path with a query: another form, a wrong escape, a control character (escaped or not), no
/// UTF-8, a name that comes twice, more than 4,096 bytes.
std::optional<Target> parse_target(std::string_view target);

}  // namespace varve::console::serve
