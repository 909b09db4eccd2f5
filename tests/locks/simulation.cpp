#include "locks/simulation.h"

#include "locks/stored_lock.h"
#include "testing/scheduler.h"
#include "transactions/slot.h"
#include "transactions/system_table.h"

#include <varve/locks/locks.h>
#include <varve/locks/metrics.h>
#include <varve/memory/memory.h>
#include <varve/store/item_store.h>
#include <varve/testing/passing_store.h>
#include <varve/testing/quiet_log.h>
#include <varve/varve.h>

#include <map>
#include <set>

namespace varve::lock_simulation {

using namespace std::chrono_literals;
using testing::FaultyStore;
using testing::RequestInfo;
using testing::detail::Halted;
using testing::detail::Scheduler;
using testing::detail::SimulatedExecutor;
using testing::detail::SkewedClock;
using testing::detail::TrueClock;

/// What the lock protects: who was inside, in the order of commits.
struct Noted {
    std::int64_t fence = 0;
    std::string section;
};
struct Note {
    std::int64_t fence = 0;
    std::string section;
};
struct Register {
    static constexpr std::string_view name = "register";
    using Event = std::variant<Noted>;
    std::vector<Noted> notes;
    void apply(const Noted& noted) { notes.push_back(noted); }
    Decision<Event> decide(const Note& note) const { return Noted{note.fence, note.section}; }
};

Settings Settings::in_calm(std::uint64_t seed) {
    Settings settings{seed};
    settings.faults = {};
    settings.stop = settings.pause = settings.jump = 0;
    settings.clock_offset_max = {};
    settings.calm = true;
    return settings;
}

Settings::Settings(std::uint64_t seed_) : seed(seed_) {
    testing::SeededRandom random{seed * 0x9e3779b97f4a7c15ull + 1};
    const auto rate = [&](double most) { return random.chance(0.5) ? most : 0.0; };
    faults = {.request_lost = rate(0.01),
              .answer_lost = rate(0.02),
              .request_late = rate(0.02),
              .delivered_again = rate(0.1),
              .any_past_request = rate(0.05),
              .error_without_effect = rate(0.02),
              .error_with_effect = rate(0.02),
              .slow_request = rate(0.05),
              .slow_answer = rate(0.05),
              .throttled = rate(0.002),
              .read_failed = rate(0.01),
              .small_page = rate(0.3)};
    if (random.chance(0.6)) stop = 0.002;
    if (random.chance(0.7)) pause = 0.004;
    if (random.chance(0.5)) {
        clock_offset_max = random.chance(0.5) ? 500ms : 3s;
        jump = 0.001;
    }
}

namespace {

constexpr const char* lock_name = "the lock";

/// Sees every write to the lock as it is applied, and judges it.
class Observer final : public testing::PassingStore {
  public:
    explicit Observer(std::shared_ptr<store::ItemStore> inner, bool calm)
        : PassingStore(std::move(inner)), calm_(calm) {}

    std::vector<std::string> violations;

    std::vector<store::WriteAnswer> write(std::span<const store::Write> writes) override {
        std::vector<store::WriteAnswer> answers;
        for (const store::Write& write : writes) {
            answers.push_back(inner().write({&write, 1}).front());
            if (write.key.table == locks::locks_table().name &&
                std::holds_alternative<store::Applied>(answers.back())) {
                applied(write.key);
            }
        }
        return answers;
    }

  private:
    void applied(const store::Key& key) {
        const std::optional<store::Item> item = inner().read({&key, 1}).front();
        if (key == locks::counter_key(lock_name)) {
            const locks::Ticket ticket = locks::decode_counter(key, item);
            if (ticket != drawn_ + 1)
                violations.push_back("ticket " + std::to_string(ticket) + " was given out of turn");
            drawn_ = ticket;
            queued_at_draw_[ticket] = queue_;
        } else if (key == locks::holder_key(lock_name)) {
            const locks::Holder holder = locks::decode_holder(key, item);
            if (holder.revision() != holder_.revision()) changed(holder);
            holder_ = holder;
        } else if (item) {
            queue_.insert(*locks::ticket_of(key));
        } else {
            queue_.erase(*locks::ticket_of(key));
        }
    }

    void changed(const locks::Holder& next) {
        if (next.owner.empty()) {
            if (next.fence != holder_.fence) violations.push_back("a release changed the fence");
            return;
        }
        if (next.fence != holder_.fence + 1) {
            violations.push_back("the fence went from " + std::to_string(holder_.fence) + " to " +
                                 std::to_string(next.fence));
        }
        if (!calm_) return;
        if (!holder_.owner.empty()) violations.push_back("the lock was entered while it was held");
        for (const locks::Ticket other : queued_at_draw_[next.ticket]) {
            if (queue_.contains(other)) {
                violations.push_back("ticket " + std::to_string(next.ticket) + " entered before " +
                                     std::to_string(other) + ", which was in the queue when it was drawn");
            }
        }
    }

    const bool calm_;
    locks::Ticket drawn_ = 0;
    locks::Holder holder_;
    std::set<locks::Ticket> queue_;
    std::map<locks::Ticket, std::set<locks::Ticket>> queued_at_draw_;
};

class Simulation {
  public:
    explicit Simulation(const Settings& settings)
        : settings_(settings),
          scheduler_(settings.seed),
          random_(settings.seed + 1),
          clock_(scheduler_),
          observer_(std::make_shared<Observer>(memory::open(), settings.calm)),
          network_({clock_, random_}, settings.faults,
                   {.timeout = 300ms, .delay_max = 5s, .again_after_max = 10s, .throttle_max = 500ms}) {}

    Result run() {
        for (const auto& schema : {transactions::events_table(), transactions::system_table(), locks::locks_table()}) {
            observer_->ensure_table(schema);
        }
        transactions::check_format(*observer_);
        chaos_ = true;
        left_ = settings_.processes;
        for (unsigned seat = 0; seat < settings_.processes; ++seat) scheduler_.spawn([this, seat] { process(seat); });
        scheduler_.run();
        if (!scheduler_.halted()) end_quietly();
        if (scheduler_.halted()) result_.violations.push_back("it does not come to an end");
        for (std::string& line : observer_->violations) result_.violations.push_back(std::move(line));
        result_.requests = network_.counts().requests;
        result_.trace = scheduler_.trace();
        return std::move(result_);
    }

  private:
    /// One life of a process.
    struct Process {
        SkewedClock clock;
        std::shared_ptr<FaultyStore> store;
        SimulatedExecutor executor;
        testing::SeededRandom random;
        bool dead = false;
    };

    /// The heartbeats of a process, beside whatever else it does.
    class Heart {
      public:
        Heart(Scheduler& scheduler, Locks& locks) : scheduler_(scheduler) {
            scheduler.spawn([state = state_, &scheduler, &locks] {
                try {
                    while (!state->stop) scheduler.sleep(std::min<Duration>(locks.beat(), 100ms));
                } catch (const testing::ProcessStopped&) {
                } catch (const Halted&) {
                }
                state->ended = true;
            });
        }
        ~Heart() {
            state_->stop = true;
            while (!state_->ended) {
                try {
                    scheduler_.sleep(5ms);
                } catch (const Halted&) {
                    scheduler_.step_quietly();
                }
            }
        }
        Heart(const Heart&) = delete;
        Heart& operator=(const Heart&) = delete;

      private:
        struct State {
            bool stop = false;
            bool ended = false;
        };
        Scheduler& scheduler_;
        std::shared_ptr<State> state_ = std::make_shared<State>();
    };

    Duration offset() {
        const auto most = static_cast<std::uint64_t>(settings_.clock_offset_max.count());
        return Duration{static_cast<Duration::rep>(random_.below(2 * most + 1))} - settings_.clock_offset_max;
    }
    Duration up_to(Duration longest, Random& random) {
        return Duration{static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()) + 1))};
    }

    std::unique_ptr<Process> start() {
        auto process = std::unique_ptr<Process>(new Process{
            .clock = SkewedClock{scheduler_, offset(), 0},
            .store = std::make_shared<FaultyStore>(
                observer_, network_, testing::Disguise{.atomic_writes_max = random_.chance(0.5) ? 0 : SIZE_MAX}),
            .executor = SimulatedExecutor{scheduler_, 1},
            .random = testing::SeededRandom{random_.next()}});
        process->store->on_request(
            [this, &process = *process](const RequestInfo& request) { return on_request(process, request); });
        return process;
    }

    testing::Next on_request(Process& process, const RequestInfo& request) {
        if (scheduler_.steps() > settings_.steps_max) scheduler_.halt();
        if (process.dead) return testing::Next::stop;
        scheduler_.note(request.number);
        if (!chaos_) {
            scheduler_.step();
            return testing::Next::proceed;
        }
        // Most requests are waiters' looks; it is the writes that matter.
        const double often = request.writes.empty() ? 0.05 : 3;
        if (random_.chance(settings_.stop * often)) {
            process.dead = true;
            ++result_.stopped;
            return testing::Next::stop;
        }
        if (random_.chance(settings_.jump * often)) process.clock.jump_to(offset());
        if (random_.chance(settings_.pause * often)) {
            scheduler_.sleep(up_to(3 * settings_.time_to_live, random_));
        } else if (request.moment == RequestInfo::Moment::before) {
            scheduler_.sleep(up_to(2ms, random_));
        }
        return process.dead ? testing::Next::stop : testing::Next::proceed;
    }

    ApplicationOptions options(Process& process) {
        return {.transactions = {.lease = 500ms, .answer_time_max = 1s},
                .sweep = false,
                .locks = {.time_to_live = settings_.time_to_live, .heartbeat_thread = false},
                .runtime = {process.clock, process.random, quiet_},
                .executor = &process.executor};
    }

    void process(unsigned seat) {
        for (unsigned left = settings_.sections; left > 0;) {
            const auto process = start();
            try {
                Application application{process->store, options(*process)};
                const Heart heart{scheduler_, application.locks()};
                for (; left > 0; --left) {
                    scheduler_.sleep(up_to(200ms, process->random));
                    section(application, *process, std::to_string(seat) + "/" + std::to_string(left));
                }
                count(application.locks().metrics());
            } catch (const testing::ProcessStopped&) {
                --left;  // what it was doing is not done again
            } catch (const UnavailableError&) {
                scheduler_.sleep(100ms);  // it could not even start
            } catch (const std::exception& error) {
                result_.violations.push_back(std::string{"a process ended with: "} + error.what());
                break;
            }
        }
        --left_;
    }

    void count(const locks::Metrics& metrics) {
        result_.acquired += metrics.acquired;
        result_.gave_up += metrics.gave_up;
        result_.lost += metrics.lost;
        result_.cleaned += metrics.cleaned;
    }

    void section(Application& application, Process& process, const std::string& name) {
        const Duration waits[] = {0s, 2s, 10s, Locks::for_ever};
        const Duration wait = waits[process.random.below(4)];
        std::optional<Lock> lock;
        try {
            lock = application.locks().try_acquire(lock_name, {.wait = wait});
        } catch (const UnavailableError&) {
            return;
        }
        if (!lock) return;
        if (settings_.calm && ++inside_ > 1) result_.violations.push_back("two are inside although nothing failed");
        const unsigned notes = 1 + static_cast<unsigned>(process.random.below(3));
        for (unsigned i = 0; i < notes; ++i) {
            const bool knew = lock->is_lost();
            try {
                scheduler_.sleep(up_to(20ms, process.random));
                const Outcome outcome = application.transact([&](Transaction& tx) {
                    if (settings_.fenced) tx.fenced_by(*lock);
                    tx.execute<Register>("r", Note{lock->fence(), name});
                });
                result_.committed += outcome.has_value();
            } catch (const LeaseLostError&) {
                result_.refused += !knew;
                break;
            } catch (const Error& error) {
                if (!error.retryable() && !error.in_doubt()) throw;
            }
        }
        if (settings_.calm) --inside_;
    }

    void end_quietly() {
        chaos_ = false;
        network_.set_rates({});
        // All that was started is gone: no place in the queue is anybody's.
        const bool nobody_died = settings_.calm;
        network_.deliver_everything();
        scheduler_.spawn([this, nobody_died] {
            scheduler_.sleep(1s);  // the last burst of throttling ends
            const auto process = start();
            process->clock.jump_to(0s);
            try {
                Application application{process->store, options(*process)};
                Locks& locks = application.locks();
                if (nobody_died && !locks.inspect(lock_name).queue.empty()) {
                    result_.violations.push_back("somebody who is gone has left a row");
                }
                scheduler_.sleep(30s + 2 * settings_.clock_offset_max);
                locks.acquire(lock_name, {.wait = 0s}).release();
                if (!locks.inspect(lock_name).queue.empty()) {
                    result_.violations.push_back("expired rows were not removed");
                }
                judge(application.load<Register>("r").state.notes);
            } catch (const std::exception& error) {
                result_.violations.push_back(std::string{"nothing works at rest: "} + error.what());
            }
        });
        scheduler_.run();
    }

    void judge(const std::vector<Noted>& notes) {
        if (notes.size() < result_.committed) result_.violations.push_back("an acknowledged note is missing");
        for (std::size_t i = 1; i < notes.size(); ++i) {
            const Noted& before = notes[i - 1];
            const Noted& after = notes[i];
            if (after.fence < before.fence || (after.fence == before.fence && after.section != before.section)) {
                result_.violations.push_back("sections overlap: " + after.section + " with fence " +
                                             std::to_string(after.fence) + " has committed after " + before.section +
                                             " with fence " + std::to_string(before.fence));
            }
        }
    }

    const Settings settings_;
    Scheduler scheduler_;
    testing::SeededRandom random_;
    TrueClock clock_;
    testing::QuietLog quiet_;
    std::shared_ptr<Observer> observer_;
    testing::Network network_;
    Result result_;
    unsigned left_ = 0;
    int inside_ = 0;
    bool chaos_ = false;
};

}  // namespace

Result simulate(const Settings& settings) {
    return Simulation{settings}.run();
}

}  // namespace varve::lock_simulation
