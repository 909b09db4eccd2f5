#include "protocol/scheduler.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace varve::protocol {

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

Scheduler::Scheduler(std::uint64_t seed) : random_(seed) {
    threads_.push_back(std::make_unique<Thread>());
}

Scheduler::~Scheduler() {
    for (const auto& thread : threads_) {
        if (thread->thread.joinable()) thread->thread.join();
    }
}

void Scheduler::spawn(std::function<void()> body) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    thread.wake_at = now_;
    ++alive_;
    thread.thread = std::thread{[this, &thread, body = std::move(body)]() mutable {
        thread.baton.acquire();
        try {
            if (!halted_) body();
        } catch (const Halted&) {
        }
        body = nullptr;
        if (before_switch) before_switch();
        thread.ended = true;
        if (--alive_ == 0) threads_.front()->blocked = false;
        current_ = next();
        threads_[current_]->baton.release();
    }};
}

void Scheduler::run() {
    threads_.front()->blocked = alive_ > 0;
    if (alive_ > 0) pass_on();
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
        for (const auto& thread : threads_) {
            if (thread->ended || thread->blocked) continue;
            first = std::min(first, thread->wake_at);
            ready += thread->wake_at <= now_;
        }
        if (ready > 0) {
            std::uint64_t chosen = ready == 1 ? 0 : random_.below(ready);
            for (std::size_t i = 0; i < threads_.size(); ++i) {
                const Thread& thread = *threads_[i];
                if (thread.ended || thread.blocked || thread.wake_at > now_) continue;
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
    mine.baton.acquire();
}

void Scheduler::step() {
    if (!halted_) pass_on();
    if (halted_) throw Halted{};
}

void Scheduler::step_quietly() {
    pass_on();
}

void Scheduler::sleep(Duration duration) {
    if (duration > Duration::zero()) threads_[current_]->wake_at = now_ + duration;
    step();
}

void Scheduler::sleep(Duration duration, const std::stop_token& stop) {
    if (!stop.stop_possible()) return sleep(duration);
    if (stop.stop_requested()) return;
    if (duration > Duration::zero() && !halted_) threads_[current_]->wake_at = now_ + duration;
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
    if (alive_ == 0) threads_.front()->blocked = false;
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
                const std::function<void()> task = std::move(state->tasks.front());
                state->tasks.pop_front();
                bool halted = false;
                try {
                    scheduler.step();
                    task();
                } catch (const Halted&) {
                    halted = true;
                } catch (...) {
                }
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
        try {
            scheduler_.sleep(std::chrono::milliseconds{5});
        } catch (const Halted&) {
        }
    }
}

void SimulatedExecutor::close() {
    state_->closed = true;
    for (const Scheduler::Waiter waiter : std::exchange(state_->idle, {})) scheduler_.wake(waiter);
}

}  // namespace varve::protocol
