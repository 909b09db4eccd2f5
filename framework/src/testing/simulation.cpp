#include "testing/simulated_world.h"

#include <varve/core/error.h>
#include <varve/core/suggest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace varve::testing {
namespace {

/// What an honest client of a bad store meets.
bool is_of_the_world(const Error& error) {
    switch (error.kind()) {
        case ErrorKind::conflict:
        case ErrorKind::in_doubt:
        case ErrorKind::unavailable:
        case ErrorKind::busy:
        case ErrorKind::overloaded:
        case ErrorKind::lease_lost: return true;
        case ErrorKind::invalid:
        case ErrorKind::config:
        case ErrorKind::storage_full:
        case ErrorKind::read_only:
        case ErrorKind::corruption: break;
    }
    return false;
}

}  // namespace

class Simulation::World final : public detail::SimulatedWorld {
  public:
    World(std::uint64_t seed, std::shared_ptr<store::ItemStore> store, const SimulationOptions& options)
        : SimulatedWorld(seed, options.troubles.value_or(Troubles::of_seed(seed)), options.requests_max),
          options_(options),
          store_(std::move(store)) {
        if (!store_) throw InvalidError("a simulation has no store; give it one, such as varve::open(\"memory:\")");
    }

    void service(std::string name, std::function<void(Application&)> start) {
        check_not_begun();
        names_.push_back(name);
        services_.push_back([this, name = std::move(name), start = std::move(start)] {
            while (!is_over()) {
                live(name, [&](Process& process, Application& application) {
                    start(application);
                    while (!is_over() && !process.is_dead())
                        scheduler_.sleep(std::chrono::seconds{1}, process.death.get_token());
                });
            }
        });
    }
    void client(std::string name, std::function<void(SimulatedClient&)> work) {
        check_not_begun();
        names_.push_back(name);
        ++clients_left_;
        clients_.push_back([this, name = std::move(name), work = std::move(work)] {
            while (!is_over()) {
                const bool is_done = live(name, [&](Process& process, Application& application) {
                    SimulatedClient self{application, process.random};
                    work(self);
                });
                if (is_done) break;
                scheduler_.sleep(std::chrono::milliseconds{100});
            }
            if (--clients_left_ == 0) end_of_clients();
        });
    }
    void kill(std::string_view name, KillAt at) {
        check_not_begun();
        if (at.request == 0) throw InvalidError("a process is killed at its first request, or a later one, not at 0");
        killed_at_.insert_or_assign(std::string{name}, at);
    }

    void run(Duration calm) {
        check_not_begun();
        for (const auto& [name, at] : killed_at_) {
            if (std::ranges::find(names_, name) != names_.end()) continue;
            throw InvalidError("nobody in the simulation who could be killed is called '" + name + "'" +
                               suggest(name, names_));
        }
        has_begun_ = true;
        calm_ = calm;
        begin_troubles();
        if (clients_.empty()) scheduler_.spawn([this] { end_of_clients(); });
        for (const auto& one : clients_) scheduler_.spawn(one);
        for (const auto& one : services_) scheduler_.spawn(one);
        scheduler_.run();
        if (failure_) std::rethrow_exception(failure_);
        if (scheduler_.halted())
            throw std::logic_error("the simulation does not come to an end within " +
                                   std::to_string(options_.requests_max) +
                                   " requests (SimulationOptions::requests_max)");
    }

    Application& at_rest() {
        if (!has_begun_) throw InvalidError("a simulation is at rest when it has run; call run() first");
        if (!rest_) {
            rest_ = start_calmly(store_, options_.disguise);
            ApplicationOptions options = options_.application;
            options.sweep = false;
            at_rest_ = std::make_unique<Application>(rest_->store, in(*rest_, options));
        }
        return *at_rest_;
    }

    SimulationReport report() const {
        return {.requests = network_.counts().requests,
                .kills = kills_,
                .simulated = scheduler_.now() - began_,
                .trace = scheduler_.trace()};
    }

    ~World() override {
        at_rest_.reset();
        rest_.reset();
        try {
            scheduler_.halt();
            scheduler_.run();
        } catch (const std::logic_error&) {  // it was told by run()
        }
    }

  private:
    using Body = std::function<void(Process&, Application&)>;

    void check_not_begun() const {
        if (has_begun_) throw InvalidError("a simulation runs once; make another one");
    }
    bool is_over() const { return is_over_ || failure_ || scheduler_.halted(); }

    /// A process from its start to its end. False: it was killed, or the world was to blame.
    bool live(const std::string& name, const Body& body) {
        const std::unique_ptr<Process> process = start(store_, options_.disguise);
        if (const auto at = killed_at_.extract(name)) process->killed_at = at.mapped();
        try {
            Application application{process->store, in(*process, options_.application)};
            body(*process, application);
            return true;
        } catch (const ProcessStopped&) {
        } catch (const detail::Halted&) {
            throw;
        } catch (const Error& error) {
            if (!is_of_the_world(error)) fail();
        } catch (...) {
            fail();
        }
        scheduler_.sleep(std::chrono::milliseconds{100});
        return false;
    }
    void fail() {
        if (!failure_) failure_ = std::current_exception();
    }
    void end_of_clients() {
        end_troubles();
        scheduler_.sleep(calm_);
        is_over_ = true;
    }

    const SimulationOptions options_;
    const std::shared_ptr<store::ItemStore> store_;
    const Time began_ = scheduler_.now();
    std::vector<std::string> names_;  // of services and clients
    std::vector<std::function<void()>> services_;
    std::vector<std::function<void()>> clients_;
    std::size_t clients_left_ = 0;
    std::map<std::string, KillAt, std::less<>> killed_at_;
    Duration calm_{};
    bool has_begun_ = false;
    bool is_over_ = false;
    std::exception_ptr failure_;
    std::unique_ptr<Process> rest_;
    std::unique_ptr<Application> at_rest_;
};

Simulation::Simulation(std::uint64_t seed, std::shared_ptr<store::ItemStore> store, const SimulationOptions& options)
    : world_(std::make_unique<World>(seed, std::move(store), options)) {}

Simulation::~Simulation() = default;

void Simulation::service(std::string name, std::function<void(Application&)> start) {
    world_->service(std::move(name), std::move(start));
}

void Simulation::client(std::string name, std::function<void(SimulatedClient&)> work) {
    world_->client(std::move(name), std::move(work));
}

void Simulation::kill(std::string_view name, KillAt at) {
    world_->kill(name, at);
}

void Simulation::run(Duration calm) {
    world_->run(calm);
}

Application& Simulation::at_rest() {
    return world_->at_rest();
}

SimulationReport Simulation::report() const {
    return world_->report();
}

std::string replay(std::uint64_t seed) {
    std::string command;
    std::ifstream words{"/proc/self/cmdline"};
    for (std::string word; std::getline(words, word, '\0');) command += " " + word;
    return "seed=" + std::to_string(seed) + " replay: VARVE_SEED=" + std::to_string(seed) + command;
}

void simulate(std::uint64_t seeds, const std::function<void(std::uint64_t seed)>& body) {
    std::uint64_t seed = 1;
    if (const char* const given = std::getenv("VARVE_SEED")) {
        const std::string_view text{given};
        const auto [end, error] = std::from_chars(text.begin(), text.end(), seed);
        if (error != std::errc{} || end != text.end())
            throw InvalidError("VARVE_SEED is a number, the one seed to run, not '" + std::string{text} + "'");
        seeds = seed;
    }
    try {
        for (; seed <= seeds; ++seed) body(seed);
    } catch (...) {
        std::cerr << replay(seed) << std::endl;
        throw;
    }
}

}  // namespace varve::testing
