#pragma once

#include <varve/core/clock.h>
#include <varve/core/log.h>
#include <varve/core/random.h>

#include <functional>

namespace varve {

/// What the framework takes from the world besides the store. All three must outlive whatever they are given to.
///
///     options.runtime.clock = my_clock;  // refers to it from now on
struct Runtime {
    std::reference_wrapper<Clock> clock = Clock::system();
    std::reference_wrapper<Random> random = Random::system();
    std::reference_wrapper<Log> log = Log::standard_error();
};

}  // namespace varve
