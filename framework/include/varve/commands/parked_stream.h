#pragma once

#include <varve/core/clock.h>
#include <varve/events/event.h>

#include <string>

namespace varve {

/// A stream that a follower has set aside, since it could not take one of its events (FollowOptions::on_poison). That
/// event and all later ones of the stream have no effect until Application::retry_parked.
struct ParkedStream {
    std::string stream;
    Version version = 0;  ///< the slot that could not be taken
    std::string type;     ///< of an event in it
    std::string error;    ///< what was thrown, at the last try
    Time since;           ///< the first
};

}  // namespace varve
