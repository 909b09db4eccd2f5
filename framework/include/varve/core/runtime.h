#pragma once

#include <varve/core/clock.h>
#include <varve/core/log.h>
#include <varve/core/random.h>

namespace varve {

/// What the framework takes from the world besides the store. All three must outlive whatever they are given to.
struct Runtime {
    Clock& clock = Clock::system();
    Random& random = Random::system();
    Log& log = Log::standard_error();
};

}  // namespace varve
