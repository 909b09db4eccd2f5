#pragma once

#include <varve/core/clock.h>
#include <varve/core/executor.h>
#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace varve::isolation {

/// Runs two parties on two threads of which one at a time moves: one party takes some steps, then the other, then each
/// goes to its end. A party that sleeps lets the other one go on.
///
/// A step is one request to the store that concerns one item, or one page.
class Interleaving {
  public:
    struct Schedule {
        std::size_t begins = 0;   ///< which party goes first
        unsigned first_run = 1;   ///< steps that it takes until the other one begins
        unsigned second_run = 0;  ///< steps that the other one takes until the first goes on to its end
    };
    /// Which of the two runs ended because its steps were used up, not because the party had come to its end.
    struct Cut {
        bool first_run = false;
        bool second_run = false;
    };

    /// An exception that escapes a party is thrown here.
    Cut run(const std::array<std::function<void()>, 2>& parties, const Schedule& schedule) {
        budget_[schedule.begins] = schedule.first_run;
        budget_[1 - schedule.begins] = schedule.second_run;
        cut_ = finished_ = {};
        turn_ = schedule.begins;
        std::array<std::exception_ptr, 2> escaped;
        {
            std::array<std::jthread, 2> threads;
            for (const std::size_t party : {0u, 1u}) {
                threads[party] = std::jthread{[&, party] {
                    me_ = party;
                    wait_for_turn();
                    try {
                        parties[party]();
                    } catch (...) {
                        escaped[party] = std::current_exception();
                    }
                    const std::lock_guard lock{mutex_};
                    finished_[party] = true;
                    turn_ = 1 - party;
                    turned_.notify_all();
                }};
            }
        }
        for (const std::exception_ptr& error : escaped) {
            if (error) std::rethrow_exception(error);
        }
        return {cut_[schedule.begins], cut_[1 - schedule.begins]};
    }

    /// Before each step of a party. Whoever is none is not stopped.
    void step() {
        if (me_ == nobody) return;
        if (budget_[me_] == 0) {
            budget_[me_] = unlimited;
            cut_[me_] = true;
            let_the_other_go_on();
        } else if (budget_[me_] != unlimited) {
            --budget_[me_];
        }
    }

    void let_the_other_go_on() {
        if (me_ == nobody) return;
        {
            const std::lock_guard lock{mutex_};
            if (finished_[1 - me_]) return;
            turn_ = 1 - me_;
        }
        turned_.notify_all();
        wait_for_turn();
    }

  private:
    static constexpr std::size_t nobody = 2;
    static constexpr unsigned unlimited = std::numeric_limits<unsigned>::max();

    void wait_for_turn() {
        std::unique_lock lock{mutex_};
        turned_.wait(lock, [&] { return turn_ == me_; });
    }

    static inline thread_local std::size_t me_ = nobody;
    std::mutex mutex_;
    std::condition_variable turned_;
    std::size_t turn_ = 0;              // guarded by mutex_
    std::array<bool, 2> finished_{};    // guarded by mutex_
    std::array<unsigned, 2> budget_{};  // each used by its own party only, while it has the turn
    std::array<bool, 2> cut_{};
};

inline std::string to_string(const Interleaving::Schedule& schedule) {
    return "party " + std::to_string(schedule.begins) + " went " + std::to_string(schedule.first_run) +
           " steps, then the other one " + std::to_string(schedule.second_run);
}

/// Calls `run` with every schedule there is, until it returns nullopt.
inline void every_schedule(const std::function<std::optional<Interleaving::Cut>(const Interleaving::Schedule&)>& run) {
    for (const std::size_t begins : {0u, 1u}) {
        for (unsigned first = 1;; ++first) {
            std::optional<Interleaving::Cut> cut;
            unsigned second = 0;
            do {
                cut = run({.begins = begins, .first_run = first, .second_run = second++});
                if (!cut) return;
            } while (cut->first_run && cut->second_run);
            if (!cut->first_run) break;
        }
    }
}

/// Time that passes by itself, a little with every look, and by sleeping.
class SteppedClock final : public Clock {
  public:
    explicit SteppedClock(Interleaving& interleaving) : interleaving_(interleaving) {}
    Time now() override { return now_ += Duration{1}; }
    SteadyTime steady_now() override { return SteadyTime{now().time_since_epoch()}; }
    void sleep_for(Duration duration, std::stop_token) override {
        now_ += duration;
        interleaving_.let_the_other_go_on();
    }

  private:
    Interleaving& interleaving_;
    Time now_ = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
};

/// Takes batches and ranges apart, as any store may, so that a party can be stopped between any two items.
class SteppedStore final : public testing::PassingStore {
  public:
    SteppedStore(std::shared_ptr<store::ItemStore> inner, Interleaving& interleaving)
        : PassingStore(std::move(inner)), interleaving_(interleaving) {}

    std::vector<std::optional<store::Item>> read(std::span<const store::Key> keys) override {
        std::vector<std::optional<store::Item>> items;
        for (const store::Key& key : keys) {
            interleaving_.step();
            items.push_back(inner().read({&key, 1}).front());
        }
        return items;
    }
    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        std::vector<store::WriteAnswer> answers;
        for (const store::Write& write : writes) {
            interleaving_.step();
            answers.push_back(inner().write({&write, 1}).front());
        }
        return answers;
    }
    store::Page query(const store::Query& query) override {
        interleaving_.step();
        store::Query small = query;
        small.limit = 1;
        return inner().query(small);
    }
    store::Page scan(const store::Scan& scan) override {
        interleaving_.step();
        return inner().scan(scan);
    }
    store::AtomicAnswer write_atomically(std::span<const store::Write> writes) override {
        interleaving_.step();
        return inner().write_atomically(writes);
    }

  private:
    Interleaving& interleaving_;
};

/// What would run in the background is part of the schedule.
class AtOnce final : public Executor {
  public:
    void post(std::function<void()> task) override { task(); }
    void drain() override {}
};

}  // namespace varve::isolation
