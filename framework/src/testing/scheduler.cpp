#include "testing/scheduler.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <stdexcept>
#include <utility>

namespace varve::testing::detail {

OnOneCore::OnOneCore() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(std::max(sched_getcpu(), 0)), &one);
    // Where it is not allowed, it is only slower.
    if (sched_getaffinity(0, sizeof before_, &before_) != 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        CPU_ZERO(&before_);
}

OnOneCore::~OnOneCore() {
    if (CPU_COUNT(&before_) > 0) static_cast<void>(sched_setaffinity(0, sizeof before_, &before_));
}

void Baton::acquire() {
    while (sem_wait(&native_) != 0 && errno == EINTR) {
    }
}

bool Baton::acquire_within(std::chrono::seconds patience) {
    const auto end = std::chrono::floor<std::chrono::seconds>(Clock::system().until(patience).time_since_epoch());
    const timespec until{.tv_sec = end.count(), .tv_nsec = 0};
    while (sem_clockwait(&native_, CLOCK_MONOTONIC, &until) != 0) {
        if (errno != EINTR) return false;
    }
    // ThreadSanitizer does not know this way to wait; it sees the baton passed on by the one that it knows.
    release();
    acquire();
    return true;
}

Scheduler::Scheduler(std::uint64_t seed) : random_(seed) {
    threads_.push_back(std::make_unique<Thread>());
    living_.push_back(0);
}

Scheduler::~Scheduler() {
    for (const auto& thread : threads_) {
        if (thread->thread.joinable()) thread->thread.join();
    }
}

void Scheduler::spawn(std::function<void()> body) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    thread.wake_at = now_;
    living_.push_back(threads_.size() - 1);
    thread.thread = std::thread{[this, &thread, body = std::move(body)]() mutable {
        thread.baton.acquire();
        try {
            if (!halted_) body();
        } catch (const Halted&) {
        }
        body = nullptr;
        if (before_switch) before_switch();
        thread.ended = true;
        std::erase(living_, current_);
        if (living_.size() == 1) threads_.front()->blocked = false;
        current_ = next();
        threads_[current_]->baton.release();
    }};
}

void Scheduler::run() {
    threads_.front()->blocked = living_.size() > 1;
    if (living_.size() > 1) pass_on();
    for (const auto& thread : threads_) {
        if (thread->ended && thread->thread.joinable()) thread->thread.join();
    }
    if (stuck_) throw std::logic_error("everybody waits for somebody else");
}

std::size_t Scheduler::next() {
    ++steps_;
    for (;;) {
        std::size_t ready = 0;
        Time first = Time::max();
        for (const std::size_t i : living_) {
            const Thread& thread = *threads_[i];
            if (thread.blocked) continue;
            first = std::min(first, thread.wake_at);
            ready += thread.wake_at <= now_;
        }
        if (ready > 0) {
            std::uint64_t chosen = ready == 1 ? 0 : random_.below(ready);
            for (const std::size_t i : living_) {
                const Thread& thread = *threads_[i];
                if (thread.blocked || thread.wake_at > now_) continue;
                if (chosen-- == 0) return i;
            }
        }
        if (first == Time::max()) {  // nobody can go on
            stuck_ = true;
            halt();
            continue;
        }
        now_ = first;
    }
}

void Scheduler::pass_on() {
    if (before_switch) before_switch();
    const std::size_t me = current_;
    const std::size_t other = next();
    note(other);
    if (other == me) return;
    current_ = other;
    Thread& mine = *threads_[me];  // whoever has the baton may spawn, which moves the list
    threads_[other]->baton.release();
    if (me == 0) return watch(mine.baton);
    mine.baton.acquire();
}

void Scheduler::watch(Baton& mine) {
    constexpr std::chrono::minutes patience{2};
    for (std::uint64_t before = steps(); !mine.acquire_within(patience); before = steps()) {
        if (steps() != before) continue;
        std::cerr << "a simulated thread has had no turn for " << patience.count()
                  << " minutes: whoever runs waits for something outside of the simulation, such as a mutex, a future "
                     "or a queue; in a simulation wait by the clock of the application"
                  << std::endl;
        std::abort();
    }
}

void Scheduler::step() {
    if (!halted_) pass_on();
    if (halted_) throw Halted{};
}

void Scheduler::step_quietly() {
    pass_on();
}

void Scheduler::sleep_quietly(Duration duration) {
    if (!halted_) threads_[current_]->wake_at = after(duration);
    pass_on();
}

void Scheduler::sleep(Duration duration) {
    if (duration > Duration::zero()) threads_[current_]->wake_at = after(duration);
    step();
}

void Scheduler::sleep(Duration duration, const std::stop_token& stop) {
    if (!stop.stop_possible()) return sleep(duration);
    if (stop.stop_requested()) return;
    if (duration > Duration::zero() && !halted_) threads_[current_]->wake_at = after(duration);
    const std::stop_callback wake{stop, [this, me = current_] { threads_[me]->wake_at = now_; }};
    pass_on();
}

void Scheduler::block() {
    if (halted_) throw Halted{};
    threads_[current_]->blocked = true;
    step();
}

void Scheduler::halt() {
    halted_ = true;
    for (std::size_t i = 1; i < threads_.size(); ++i) {
        threads_[i]->blocked = false;
        threads_[i]->wake_at = now_;
    }
    if (living_.size() == 1) threads_.front()->blocked = false;
}

class SimulatedThreads::SimulatedThread final : public Running {
  public:
    SimulatedThread(Scheduler& scheduler, std::function<void(const std::stop_token&)> run) : scheduler_(scheduler) {
        scheduler.spawn([&scheduler, state = state_, run = std::move(run)]() mutable {
            try {
                scheduler.step();
                run(state->stop.get_token());
            } catch (...) {
                // Its process has been killed, or the run has been halted.
            }
            run = nullptr;  // what it holds may itself have something to say to the store
            state->has_ended = true;
        });
    }
    ~SimulatedThread() override {
        state_->stop.request_stop();
        while (!state_->has_ended) scheduler_.sleep_quietly(std::chrono::milliseconds{1});
    }
    void request_stop() noexcept override { state_->stop.request_stop(); }

  private:
    struct State {
        std::stop_source stop = {};
        bool has_ended = false;
    };
    Scheduler& scheduler_;
    const std::shared_ptr<State> state_ = std::make_shared<State>();
};

std::unique_ptr<Threads::Running> SimulatedThreads::start(std::function<void(const std::stop_token&)> run) {
    return std::make_unique<SimulatedThread>(scheduler_, std::move(run));
}

SimulatedExecutor::SimulatedExecutor(Scheduler& scheduler, std::size_t threads) : scheduler_(scheduler) {
    for (std::size_t i = 0; i < threads; ++i) {
        scheduler.spawn([&scheduler, state = state_] {
            for (;;) {
                if (state->tasks.empty()) {
                    if (state->closed) return;
                    state->idle.push_back(scheduler.self());
                    scheduler.block();
                    continue;
                }
                std::function<void()> task = std::move(state->tasks.front());
                state->tasks.pop_front();
                bool halted = false;
                try {
                    scheduler.step();
                    task();
                } catch (const Halted&) {
                    halted = true;
                } catch (...) {
                }
                task = nullptr;  // what it holds may itself have something to say to the store
                --state->unfinished;
                if (halted) {
                    state->unfinished -= std::exchange(state->tasks, {}).size();
                    return;
                }
            }
        });
    }
}

void SimulatedExecutor::post(std::function<void()> task) {
    state_->tasks.push_back(std::move(task));
    ++state_->unfinished;
    for (const Scheduler::Waiter waiter : std::exchange(state_->idle, {})) scheduler_.wake(waiter);
}

void SimulatedExecutor::drain() {
    while (state_->unfinished > 0) {
        if (scheduler_.halted()) {
            state_->unfinished -= std::exchange(state_->tasks, {}).size();
            scheduler_.step_quietly();
            continue;
        }
        scheduler_.sleep_quietly(std::chrono::milliseconds{5});
    }
}

void SimulatedExecutor::close() {
    state_->closed = true;
    for (const Scheduler::Waiter waiter : std::exchange(state_->idle, {})) scheduler_.wake(waiter);
}

}  // namespace varve::testing::detail
