#pragma once

#include "testing/scheduler.h"

#include <varve/commands/application.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/quiet_log.h>
#include <varve/testing/simulation.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace varve::testing::detail {

/// What the processes of a simulated cluster live in: its time, its network, and the troubles that they meet there.
///
/// Threads: everything is done by the holder of the scheduler's baton.
class SimulatedWorld {
  public:
    /// One life of a process: from its start until it ends or is killed.
    struct Process {
        SkewedClock clock;
        std::shared_ptr<FaultyStore> store;
        SimulatedExecutor executor;
        SimulatedThreads threads;
        SeededRandom random;
        std::stop_source death = {};  ///< requested when it is killed
        std::optional<Simulation::KillAt> killed_at = {};

        bool is_dead() const { return death.stop_requested(); }
    };

    /// `store`: what all of them ask, over the network.
    SimulatedWorld(std::uint64_t seed, const Troubles& troubles, std::uint64_t requests_max);
    virtual ~SimulatedWorld() = default;

    /// From here on the processes have troubles.
    void begin_troubles();
    /// From here on they have none, and what was on its way has arrived.
    void end_troubles();

  protected:
    /// A process with clocks of its own, which asks `store` over the network.
    std::unique_ptr<Process> start(std::shared_ptr<store::ItemStore> store, const Disguise& disguise);
    /// One that never has troubles.
    std::unique_ptr<Process> start_calmly(std::shared_ptr<store::ItemStore> store, const Disguise& disguise);
    /// `options` in this process.
    ApplicationOptions in(Process& process, ApplicationOptions options);

    /// A request begins, or ends. Returns how much more often than another one its process is killed there, or stands
    /// still.
    virtual double meet(const RequestInfo& request);
    virtual void note_kill() {}
    virtual void note_pause() {}

    std::uint64_t seed() const { return seed_; }
    Duration random_up_to(Duration most) {
        return Duration{static_cast<Duration::rep>(random_.below(static_cast<std::uint64_t>(most.count()) + 1))};
    }

    Scheduler scheduler_;
    SeededRandom random_;
    TrueClock clock_;
    QuietLog quiet_;
    Network network_;
    std::uint64_t kills_ = 0;

  private:
    std::unique_ptr<Process> start(const SkewedClock& clock, std::shared_ptr<store::ItemStore> store,
                                   const Disguise& disguise);
    Duration random_offset();
    Next on_request(Process& process, const RequestInfo& request);

    const std::uint64_t seed_;
    const Troubles troubles_;
    const std::uint64_t requests_max_;
    bool has_troubles_ = false;
};

}  // namespace varve::testing::detail
