#pragma once

#include <varve/core/clock.h>
#include <varve/core/executor.h>
#include <varve/core/threads.h>
#include <varve/testing/seeded_random.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include <sched.h>
#include <semaphore.h>

namespace varve::testing::detail {

/// Keeps the thread that makes it, and all that this one starts, on one core. Of threads that run one at a time none is
/// faster for a second core, but each switch waits there for its turn: on a busy machine thirty times as long.
class OnOneCore {
  public:
    OnOneCore();
    ~OnOneCore();
    OnOneCore(const OnOneCore&) = delete;
    OnOneCore& operator=(const OnOneCore&) = delete;

  private:
    cpu_set_t before_;
};

/// Passed from thread to thread. The standard library's semaphore would look for it again and again before it sleeps,
/// while whoever has it waits for the core.
class Baton {
  public:
    Baton() { sem_init(&native_, 0, 0); }
    ~Baton() { sem_destroy(&native_); }
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;

    void release() { sem_post(&native_); }
    void acquire();
    /// False: it was not there for so long.
    bool acquire_within(std::chrono::seconds patience);

  private:
    sem_t native_;
};

/// Thrown out of every switch point once a simulation has been halted.
struct Halted {};

/// Runs threads one at a time, by chance out of a seed: whoever runs holds the baton and passes it on only where it
/// calls `step`, `sleep` or `block`. Time is virtual; it moves when everybody sleeps, to the moment of the first to
/// wake. So one seed fixes a whole run of many threads, and what they share needs no locks.
///
/// Threads: all methods are called by the holder of the baton; it is first that of the creator.
class Scheduler {
  public:
    explicit Scheduler(std::uint64_t seed);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    void spawn(std::function<void()> body);
    /// Returns when everything spawned has ended; std::logic_error if what is left waits for ever. For the creator. A
    /// thread that waits for something outside of the simulation while it has the baton, such as a mutex whose holder
    /// is not its turn, ends the program with a line that says so.
    void run();

    /// Maybe somebody else goes on now.
    void step();
    void sleep(Duration duration);
    /// As `sleep`, until `stop` is requested at the latest. Whoever can be woken has to be: throws nothing.
    void sleep(Duration duration, const std::stop_token& stop);

    /// A thread that waits to be woken.
    using Waiter = std::size_t;
    Waiter self() const { return current_; }
    void block();
    void wake(Waiter waiter) { threads_[waiter]->blocked = false; }

    Time now() const { return now_; }
    std::uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }

    /// Ends the run: every thread gets Halted from its next switch point, and so from every later one.
    void halt();
    bool halted() const { return halted_; }
    /// As `step` and `sleep`, for destructors: throw nothing.
    void step_quietly();
    void sleep_quietly(Duration duration);

    /// Called by the holder before it may lose the baton.
    std::function<void()> before_switch;
    /// What the switches were, as one number.
    std::uint64_t trace() const { return trace_; }
    void note(std::uint64_t value) { trace_ = (trace_ ^ value) * 1099511628211ull; }

  private:
    struct Thread {
        Baton baton;
        Time wake_at{};
        bool blocked = false;
        bool ended = false;
        std::thread thread;
    };

    Time after(Duration duration) const { return duration < Time::max() - now_ ? now_ + duration : Time::max(); }
    std::size_t next();
    void pass_on();
    /// Waits for the creator's baton, and ends the program if the others stand still.
    void watch(Baton& mine);

    const OnOneCore on_one_core_;
    testing::SeededRandom random_;
    std::vector<std::unique_ptr<Thread>> threads_;  // the creator first
    std::vector<std::size_t> living_;               // of these, in their order, those that have not ended
    std::size_t current_ = 0;
    Time now_ = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
    std::atomic<std::uint64_t> steps_ = 0;  // the creator looks at it while others have the baton
    std::uint64_t trace_ = 14695981039346656037ull;
    bool halted_ = false;
    bool stuck_ = false;
};

/// The true time of a simulation, and of nobody in it.
class TrueClock final : public Clock {
  public:
    explicit TrueClock(Scheduler& scheduler) : scheduler_(scheduler) {}
    Time now() override { return scheduler_.now(); }
    SteadyTime steady_now() override { return SteadyTime{scheduler_.now().time_since_epoch()}; }
    void sleep_for(Duration duration, std::stop_token stop) override { scheduler_.sleep(duration, stop); }

  private:
    Scheduler& scheduler_;
};

/// A process's clocks: too fast or too slow, the wall clock also wrong by an offset that may jump.
class SkewedClock final : public Clock {
  public:
    SkewedClock(Scheduler& scheduler, Duration offset, double drift)
        : scheduler_(scheduler), began_(scheduler.now()), offset_(offset), drift_(drift) {}
    Time now() override { return drifted() + offset_; }
    SteadyTime steady_now() override { return SteadyTime{drifted().time_since_epoch()}; }
    void sleep_for(Duration duration, std::stop_token stop) override { scheduler_.sleep(duration, stop); }
    void jump_to(Duration offset) { offset_ = offset; }

  private:
    Time drifted() const {
        const auto elapsed = static_cast<double>((scheduler_.now() - began_).count());
        return scheduler_.now() + Duration{static_cast<Duration::rep>(elapsed * drift_)};
    }

    Scheduler& scheduler_;
    const Time began_;
    Duration offset_;
    const double drift_;
};

/// Background loops as simulated threads. What escapes one ends it.
class SimulatedThreads final : public Threads {
  public:
    explicit SimulatedThreads(Scheduler& scheduler) : scheduler_(scheduler) {}
    std::unique_ptr<Running> start(std::function<void(const std::stop_token&)> run) override;

  private:
    class SimulatedThread;
    Scheduler& scheduler_;
};

/// Background work as simulated threads. What escapes a task, its process's death too, ends only the task.
class SimulatedExecutor final : public Executor {
  public:
    SimulatedExecutor(Scheduler& scheduler, std::size_t threads);
    ~SimulatedExecutor() override { close(); }
    void post(std::function<void()> task) override;
    void drain() override;
    /// Lets the threads end when nothing is left to do.
    void close();

  private:
    struct State {
        std::deque<std::function<void()>> tasks = {};
        std::vector<Scheduler::Waiter> idle = {};
        std::size_t unfinished = 0;
        bool closed = false;
    };
    Scheduler& scheduler_;
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace varve::testing::detail
