#pragma once

#include "testing/scheduler.h"

/// What runs the threads of these tests, one at a time.
namespace varve::protocol {

using testing::detail::Halted;
using testing::detail::Scheduler;
using testing::detail::SimulatedExecutor;
using testing::detail::SkewedClock;
using testing::detail::TrueClock;

}  // namespace varve::protocol
