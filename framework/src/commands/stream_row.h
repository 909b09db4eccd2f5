#pragma once

#include <varve/core/clock.h>

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
};

}  // namespace varve::detail
