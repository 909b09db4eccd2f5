#pragma once

#include <varve/commands/application.h>
#include <varve/testing/faulty_store.h>
#include <varve/testing/seeded_random.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace varve::testing {

/// What goes wrong in a simulation, and how often: probabilities are in [0, 1].
struct Troubles {
    FaultRates faults = {};  ///< of requests, and their answers
    FaultTimes times = {};
    double kill = 0;   ///< at each moment of a request: its process is gone from there on
    double pause = 0;  ///< …: its thread stands still for up to `pause_max`
    Duration pause_max = std::chrono::minutes{3};
    Duration way_max = std::chrono::milliseconds{2};  ///< what a request takes, at most, if nothing happens to it
    Duration clock_offset_max = Duration::zero();  ///< by so much a process's wall clock is wrong, at most, both ways
    double clock_drift_max = 0;                    ///< by so much its clocks go too fast, or too slow: 0.01 is 1%
    double clock_jump = 0;                         ///< at each moment of a request: its wall clock is set anew

    /// Some of all: each seed has its own, so that each has room to do its worst.
    static Troubles of_seed(std::uint64_t seed);
};

struct SimulationOptions {
    std::optional<Troubles> troubles = {};  ///< nullopt: Troubles::of_seed
    Disguise disguise = {};                 ///< what no process sees of the store
    /// Of every process. `runtime` and `executor` are the simulation's own.
    ApplicationOptions application = {};
    /// Requests of all processes together, at most: a run with more does not come to an end.
    std::uint64_t requests_max = 3'000'000;
};

/// What the work of a client is given. Lives as long as the process it is in.
class SimulatedClient {
  public:
    Application& application;
    SeededRandom& random;

    /// Lets time pass for everybody.
    void sleep(Duration duration) { application.runtime().clock.get().sleep_for(duration); }
    /// As future.get(), which would wait for what has no turn meanwhile.
    template <class T>
    T get(std::future<T> future) {
        while (future.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
            sleep(std::chrono::milliseconds{1});
        return future.get();
    }
};

/// What a simulation has come to so far.
struct SimulationReport {
    std::uint64_t requests = 0;
    std::uint64_t kills = 0;
    Duration simulated = Duration::zero();  ///< how long it took in there
    std::uint64_t trace = 0;                ///< of one seed always the same, as long as the program is the same
};

/// A cluster of processes on one store, in one thread at a time, in a time of its own: an hour passes in a moment, and
/// the same seed gives the same run. Requests are lost, repeated and late, clocks are wrong, and processes are killed
/// at any request, as `Troubles` say. Everything that an application does in the background takes part: followers,
/// processes, timers, deliveries.
///
///     varve::testing::simulate(100, [](std::uint64_t seed) {
///         varve::testing::Simulation world{seed, varve::open("memory:")};
///         world.service("shop", [](varve::Application& shop) { varve::run<Checkout>(shop); });
///         world.client("customer", [](varve::testing::SimulatedClient& self) {
///             for (int i = 0; i < 10; ++i) self.application.execute<Order>(…);
///         });
///         world.run();
///         Application& shop = world.at_rest();
///         …  // what must hold now?
///     });
///
/// Only one thread runs at a time, and another one's turn comes when that asks the store or waits by its application's
/// clock. So what is called here must wait for nothing else: no mutex, future or queue that another one holds or fills.
/// It needs no lock either.
///
/// Threads: belongs to one.
class Simulation {
  public:
    /// Everything is in `store`, and a store may have something in it. Chance, and the troubles unless given, come from
    /// the seed.
    Simulation(std::uint64_t seed, std::shared_ptr<store::ItemStore> store, const SimulationOptions& options = {});
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    /// A process that is there all the time. `start` says what it does in the background: follow, run, deliver. When it
    /// is killed, another one takes its place.
    void service(std::string name, std::function<void(Application&)> start);
    /// A process that does some work, and ends. When it is killed, `work` is cut off at a request by something that is
    /// no std::exception, and begins anew in another process; what it keeps outside of its process tells it how far it
    /// was. The same happens when it throws an Error that the world is to blame for: kind() conflict, in_doubt,
    /// unavailable, busy, overloaded or lease_lost.
    void client(std::string name, std::function<void(SimulatedClient&)> work);
    /// The first process of this service, or client, is killed at its n-th request, counted from 1: before the request
    /// is sent, or, if `applied`, before its answer is there. Whether it had so many says report().kills. So a test can
    /// go through all of them. Errors: InvalidError for request 0 and once it runs; from run(), if nobody has the name.
    struct KillAt {
        std::uint64_t request = 1;
        bool applied = false;
    };
    void kill(std::string_view name, KillAt at);

    /// Lets everybody go on until all clients are done, and then for `calm` without any troubles: what is under way
    /// comes to its end, timers of that time fire. Then services end. Once. Errors: what a service or a client has
    /// thrown, unless it is as above; std::logic_error if it does not come to an end.
    void run(Duration calm = std::chrono::minutes{10});

    /// After run: an application without troubles, to look at what there is. It runs nothing in the background. Lives
    /// as long as the simulation.
    Application& at_rest();
    SimulationReport report() const;

  private:
    class World;
    std::unique_ptr<World> world_;
};

/// "seed=17 replay: VARVE_SEED=17 ./shop_test --gtest_filter=…", with this program's own command line.
std::string replay(std::uint64_t seed);

/// Calls `body` with 1, 2 … `seeds`; if the environment has a VARVE_SEED, with that alone. What it throws passes
/// through, after replay(seed) was written to standard error. A test framework's failures, which throw nothing, name
/// the seed if `body` says so: SCOPED_TRACE(varve::testing::replay(seed)). InvalidError for a VARVE_SEED that is no
/// number.
void simulate(std::uint64_t seeds, const std::function<void(std::uint64_t seed)>& body);

}  // namespace varve::testing
