#pragma once

#include <varve/core/clock.h>
#include <varve/events/event.h>

#include <cstdint>
#include <string>

namespace varve {

/// A stream that a follower has set aside, since it could not take one of its events (FollowOptions::on_poison), or
/// deliver one of its effects (commands/delivery.h). That one and all later ones of the stream have no effect until
/// Application::retry_parked; effects are tried again by themselves, too.
struct ParkedStream {
    std::string stream;
    Version version = 0;        ///< the slot that could not be taken
    std::string type;           ///< of an event in it, or of the effect
    std::string error;          ///< what was thrown, at the last try
    Time since;                 ///< the first
    std::string id = {};        ///< of that event or effect; empty if an earlier version has set it aside
    std::int64_t attempts = 0;  ///< of an effect: how often it was tried while the receiver took others
    bool given_up = false;      ///< an effect that is not tried again by itself
};

}  // namespace varve
