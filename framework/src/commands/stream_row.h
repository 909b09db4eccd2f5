#pragma once

#include <varve/core/clock.h>

#include <string>
#include <string_view>

namespace varve::detail {

/// A stream that has events: a row in a table of the framework's own.
///
///     partition := group        sort := the stream's name
///     partition := "$"          sort := group                   one row for each that there is
///     group     := what the name has up to its first "-", and with it; all of a name that has none
///
/// No group is the beginning of another one but for names without "-", so that groups in order, each with its streams
/// in order, are all names in order.
struct StreamRow {
    static constexpr std::string_view table = "streams";
    static constexpr bool sorted = true;
    Time since;  ///< when the first event was decided

    static constexpr const char* groups = "$";           ///< the partition of the groups
    static constexpr const char* follower = "$streams";  ///< whose checkpoint says how far the list goes
    static std::string group_of(std::string_view stream) {
        const std::size_t dash = stream.find('-');
        return std::string{dash == std::string_view::npos ? stream : stream.substr(0, dash + 1)};
    }
};

}  // namespace varve::detail
