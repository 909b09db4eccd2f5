#pragma once

#include <varve/core/clock.h>
#include <varve/events/event.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace varve::detail {

/// A stream that a follower has set aside: a row under the follower's name and the stream's, in a table of the
/// framework's own. Its events are where they always were, so that however many follow, it stays this one row.
struct ParkedRow {
    static constexpr std::string_view table = "followers.parked";
    static constexpr bool sorted = true;
    std::int64_t position = 0;  ///< in the feed: up to here the stream's events have been taken
    Version version = 0;        ///< of the slot that could not be taken
    std::string type;
    std::string error;
    Time since;
    std::string id = {};        ///< of the first of these that could not be taken
    std::int64_t index = 0;     ///< of an effect in its slot: those before it are done
    std::int64_t attempts = 0;  ///< to deliver it, while others got through
    bool given_up = false;      ///< it is not tried again by itself
};

}  // namespace varve::detail
