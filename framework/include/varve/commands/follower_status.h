#pragma once

#include <varve/core/clock.h>

#include <cstdint>
#include <optional>
#include <string>

namespace varve {

/// How a follower is doing.
struct FollowerStatus {
    enum class State : std::uint8_t {
        elsewhere,    ///< another process has it, or it has not begun
        catching_up,  ///< there are events that it has not seen
        live,         ///< it had seen everything when it last looked
        building,     ///< it makes rows anew beside those that are read (Application::rebuild)
        stopped,      ///< it cannot go on, and `error` says why
    };
    std::string name;
    State state = State::elsewhere;
    std::uint64_t position = 0;  ///< what is stored up to here, it has seen, and its effects are committed
    std::uint64_t end = 0;       ///< of all that is stored; end - position is what is left, in writes of slots
    std::int64_t events = 0;     ///< that it has taken, ever, by all processes
    std::int64_t parked = 0;     ///< streams that it has set aside (Application::parked)
    /// How old the last event is that it has taken, by the clocks of whoever decided that and of this process. Zero:
    /// it has seen all that is stored. Nullopt: it has taken none.
    std::optional<Duration> lag = {};
    /// That it takes in a second, here and lately. Nullopt: another process has it, or it has just begun.
    std::optional<double> events_per_second = {};
    std::string owner = {};    ///< who has its lock, perhaps one that has died a moment ago; empty: nobody
    std::string error = {};    ///< why it has stopped, here or in the process that had it last; empty: it has not
    std::int64_t version = 1;  ///< of the projection that these rows are made by
    std::int64_t build = 1;    ///< how often they were made anew, from 1; a rebuild has an entry of its own
    /// Of the streams of the `partitions` that it is split into (FollowOptions::partitions); each has an entry.
    std::int64_t partition = 1;
    std::int64_t partitions = 1;
    bool paused = false;  ///< a rebuild that waits for resume_rebuild
    /// Of a rebuild in this process: when it will be live, as things go; nullopt: not known.
    std::optional<Duration> time_left = {};
};
const char* to_string(FollowerStatus::State state) noexcept;

}  // namespace varve
