#pragma once

#include <varve/commands/application.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>

namespace varve::testing {

/// A world in which nothing happens by itself: a sleep moves the clock and returns, background work waits in `later`,
/// and nobody sweeps.
///
///     struct Transfers : ::testing::Test, varve::testing::ManualWorld {
///         std::shared_ptr<varve::store::ItemStore> store = varve::open("memory:");
///         varve::Application bank{store, options()};
///         varve::Application hasty{store, options({.retry = varve::RetryPolicy::once()})};
///     };
///
/// It must outlive its applications. Threads: as an Application.
struct ManualWorld {
    ManualClock clock{ManualClock::Mode::auto_advance};
    Later later;

    /// For an application in this world. What else is set in `with` stays.
    ApplicationOptions options(ApplicationOptions with = {}) {
        with.sweep = false;
        with.runtime.clock = clock;
        with.executor = &later;
        return with;
    }
};

}  // namespace varve::testing
