#include "protocol/judge.h"
#include "protocol/ledger.h"
#include "protocol/record.h"
#include "protocol/scripted_store.h"
#include "protocol/workload.h"
#include "support/coordinator_of.h"
#include "transactions/sweeper.h"
#include "transactions/system_table.h"

#include <varve/aggregates/cache_metrics.h>
#include <varve/commands/lane_metrics.h>
#include <varve/store/open.h>
#include <varve/testing/later.h>
#include <varve/testing/manual_clock.h>
#include <varve/testing/quiet_log.h>

#include <deque>
#include <iostream>

#include <gtest/gtest.h>

/// The crash grid of whole applications: with lanes, a cache, snapshots, command ids, locks and effects. One process
/// executes commands and meets a fault at every single request; then somebody else comes by, who may end at every
/// request, too; then the sweeper. Everything is enumerated: a process's seed says what it does, and nothing else is
/// random.
namespace varve::protocol {
namespace {

using namespace std::chrono_literals;
using transactions::Strategy;
using transactions::Sweeper;

const std::vector<std::string> all_tables{"events", "balances", "lists", "notes"};
constexpr Scale scale{.keys = 2, .participants = 3, .money = 1000, .bursts = true, .lock_time_to_live = 1s};

/// What is posted runs while its process sleeps, and at the end.
class WhileAsleep final : public testing::Later {
  public:
    void drain() override {
        for (bool more = true; more;) {
            try {
                more = run_next();
            } catch (...) {  // its process has ended
            }
        }
    }
};

/// A process's own: others' sleeps do not move it.
class OwnClock final : public Clock {
  public:
    OwnClock(Time start, Executor& executor) : now_(start), executor_(executor) {}
    Time now() override { return now_; }
    SteadyTime steady_now() override { return SteadyTime{now_.time_since_epoch()}; }
    void sleep_for(Duration duration, std::stop_token stop) override {
        executor_.drain();
        if (!stop.stop_requested()) now_ += std::max(duration, Duration::zero());
    }

  private:
    Time now_;
    Executor& executor_;
};

/// What has happened in all runs, to show that the grid is not empty.
struct Seen {
    std::uint64_t runs = 0;
    std::uint64_t points = 0;
    std::uint64_t committed = 0;
    std::uint64_t cache_hits = 0;
    std::uint64_t in_lanes = 0;  // commands
    std::uint64_t batches = 0;
    std::uint64_t snapshots = 0;
    std::uint64_t sections = 0;
    std::uint64_t fenced_off = 0;
};

/// Every request of an owner; where nothing is optimised or everything watched, every fourth.
#ifdef NDEBUG
constexpr unsigned stride = 1;
#else
constexpr unsigned stride = 4;
#endif

/// One store, and what everybody was told.
struct World {
    std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>(open("memory:"));
    Record record;
    std::int64_t moments = 0;
    std::int64_t operations = 0;
    testing::QuietLog quiet;
};

struct Process {
    Process(World& where, Strategy how, Time start, std::uint64_t seed, ScriptedStore::Script script = {})
        : world(where),
          strategy(how),
          clock(start, executor),
          random(seed),
          connection(std::make_shared<ScriptedStore>(*where.ledger, std::move(script))) {}

    ApplicationOptions options() {
        return {.transactions = {.strategy = strategy, .lease = 20ms, .answer_time_max = 40ms},
                .sweep = false,
                .locks = {.time_to_live = scale.lock_time_to_live, .heartbeat_thread = false},
                .runtime = {clock, random, world.quiet},
                .executor = &executor};
    }
    Workload::Shared shared() {
        return {.scale = scale,
                .record = world.record,
                .moment = [this] { return ++world.moments; },
                .next_operation = [this] { return ++world.operations; },
                .sleep = [this](Duration time) { clock.sleep_for(time, {}); }};
    }

    World& world;
    const Strategy strategy;
    WhileAsleep executor;
    OwnClock clock;
    testing::SeededRandom random;
    std::shared_ptr<ScriptedStore> connection;
};

using Step = void (Workload::*)();

struct Scenario {
    const char* name;
    std::vector<Step> steps;
    std::uint64_t seed;  ///< what a step decides by chance: how many commands, on what, under an id or not
};

enum class Recoverer { same_again, contender, sweeper };
constexpr const char* names[] = {"the same once more", "an older contender", "the sweeper"};

struct Point {
    Strategy strategy = Strategy::protocol;
    unsigned at = 0;
    Fault fault = Fault::none;
    Recoverer by = Recoverer::sweeper;
    unsigned again_at = 0;  ///< the recoverer's request after which it ends, too; 0: it does not
};

class Grid {
  public:
    Grid(const Scenario& scenario, Seen& seen) : scenario_(scenario), seen_(seen) {}

    void enumerate(Strategy strategy) {
        for (const Fault fault : all_faults) {
            for (const Recoverer by : {Recoverer::same_again, Recoverer::contender, Recoverer::sweeper}) {
                Point point{.strategy = strategy, .at = 1, .fault = fault, .by = by};
                for (; run(point).owner; point.at += stride) {
                    ++seen_.points;
                    if (stride == 1 && fault == Fault::stop_after && by != Recoverer::same_again)
                        enumerate_recovery(point);
                }
                if (::testing::Test::HasFailure()) return;
            }
        }
    }

  private:
    struct Met {
        bool owner;
        bool recoverer;
    };

    void enumerate_recovery(Point point) {
        for (point.again_at = 1; run(point).recoverer; ++point.again_at) {
        }
    }

    Met run(const Point& point) {
        ++seen_.runs;
        World world;
        for (const auto& schema : {transactions::events_table(), transactions::system_table()})
            world.ledger->ensure_table(schema);
        const Time began = testing::ManualClock::default_start;
        std::vector<std::unique_ptr<Process>> processes;
        const auto start = [&](Duration offset, std::uint64_t seed, ScriptedStore::Script script) -> Process& {
            return *processes.emplace_back(
                std::make_unique<Process>(world, point.strategy, began + offset, seed, std::move(script)));
        };
        live(start(0s, scenario_.seed, {}), [](Application& application, Workload& workload) {
            Workload::set_up(application, scale);
            for (int i = 0; i < 2; ++i) workload.burst();  // the lists get snapshots
        });

        ScriptedStore* recoverer = nullptr;
        const auto recover = [&] {
            if (recoverer != nullptr) return;
            const ScriptedStore::Script script{.at = point.again_at, .fault = Fault::stop_after};
            const bool same = point.by == Recoverer::same_again;
            const Duration offset = point.by == Recoverer::contender ? Duration{-1s} : 1s;
            Process& process = start(offset, same ? scenario_.seed + 1 : scenario_.seed + 2, script);
            recoverer = process.connection.get();
            live(process, [&](Application& application, Workload& workload) {
                if (point.by == Recoverer::sweeper) return sweep(process, application);
                for (const Step step : scenario_.steps) (workload.*step)();
            });
        };
        Process& owner = start(0s, scenario_.seed + 1, {.at = point.at, .fault = point.fault, .others = recover});
        live(owner, [&](Application&, Workload& workload) {
            for (const Step step : scenario_.steps) (workload.*step)();
        });
        if (!owner.connection->met()) return {false, false};
        recover();
        for (const auto& process : processes) process->connection->deliver_late();

        std::vector<std::string> violations = std::move(world.record.violations);
        live(start(2s, 0, {}), [&](Application& application, Workload&) {
            sweep(*processes.back(), application);
            judge(application, world, violations);
        });
        std::ranges::move(world.record.violations, std::back_inserter(violations));
        for (const std::string& violation : violations) {
            ADD_FAILURE() << violation << "\n  " << scenario_.name << "; "
                          << (point.strategy == Strategy::protocol ? "protocol" : "native") << ", request " << point.at
                          << ": " << to_string(point.fault) << "; then " << names[static_cast<std::size_t>(point.by)]
                          << (point.again_at > 0 ? ", which ends after request " + std::to_string(point.again_at)
                                                 : std::string{});
        }
        seen_.committed += world.record.committed;
        seen_.sections += world.record.sections;
        seen_.fenced_off += world.record.fenced_off;
        return {true, recoverer->met()};
    }

    /// One life of a process.
    void live(Process& process, const std::function<void(Application&, Workload&)>& body) {
        try {
            Application application{process.connection, process.options()};
            Workload::use_tables(application, scale);
            Workload workload{application, process.shared(), process.random,
                              static_cast<std::int64_t>(process.world.moments)};
            try {
                body(application, workload);
            } catch (const Stopped&) {
            }
            process.executor.drain();
            seen_.cache_hits += application.cache_metrics().hits;
            seen_.in_lanes += application.lane_metrics().commands;
            seen_.batches += application.lane_metrics().batches;
        } catch (const Stopped&) {
        } catch (const UnavailableError&) {  // it could not even start
        }
    }

    static void sweep(Process& process, Application& application) {
        Sweeper sweeper{
            coordinator_of(application), {"balances", "lists", "notes"}, {.page_interval = 0s, .pause = 0s}};
        sweeper.sweep();
        int passes = 0;
        do {
            process.clock.sleep_for(coordinator_of(application).options().lease + 1s, {});
            if (++passes > 20) throw std::logic_error("the sweeper does not come to an end");
        } while (sweeper.sweep() > 0 || !sweeper.is_through());
    }

    void judge(Application& application, World& world, std::vector<std::string>& violations) {
        const auto take = [&](std::vector<std::string> found) {
            std::ranges::move(found, std::back_inserter(violations));
        };
        take(world.ledger->violations_at_rest(all_tables));
        take(judge_at_rest(application, *world.ledger, world.record, scale, world.moments + 1));
        for (const char* list : {"s0", "s1"}) seen_.snapshots += application.check_snapshot<List>(list).version > 0;
    }

    const Scenario& scenario_;
    Seen& seen_;
};

TEST(CommandGrid, all_or_nothing_and_as_told_whoever_ends_at_whatever_request_with_everything_on) {
    const Scenario scenarios[] = {
        {"batches in a lane", {&Workload::burst, &Workload::burst}, 10},
        {"a transfer and its repeat", {&Workload::transfer, &Workload::repeat}, 20},
        {"fenced commands", {&Workload::section}, 30},
        {"appends to streams and rows", {&Workload::lists, &Workload::burst}, 40},
        {"fenced commands between batches", {&Workload::burst, &Workload::section, &Workload::transfer}, 50},
    };
    Seen seen;
    for (const Scenario& scenario : scenarios) {
        for (const Strategy strategy : {Strategy::protocol, Strategy::automatic}) {
            if (!HasFailure()) Grid{scenario, seen}.enumerate(strategy);
        }
    }
    std::cout << "command grid: " << seen.runs << " runs, " << seen.points << " points of an owner; " << seen.committed
              << " commands committed, " << seen.cache_hits << " cache hits, " << seen.in_lanes << " commands in "
              << seen.batches << " batches, " << seen.snapshots << " snapshots, " << seen.sections << " sections, "
              << seen.fenced_off << " commands refused by the fence\n";
    EXPECT_GT(seen.points, 4'000u / stride);
    EXPECT_GT(seen.in_lanes, seen.batches * 3 / 2);
    for (const std::uint64_t count : {seen.cache_hits, seen.snapshots, seen.sections, seen.fenced_off})
        EXPECT_GT(count, 100u / stride);
}

}  // namespace
}  // namespace varve::protocol
