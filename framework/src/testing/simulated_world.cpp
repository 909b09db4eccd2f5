#include "testing/simulated_world.h"

#include <utility>

namespace varve::testing {

using namespace std::chrono_literals;

Troubles Troubles::of_seed(std::uint64_t seed) {
    SeededRandom random{seed * 0x9e3779b97f4a7c15ull + 7};
    const double weights[] = {0.3, 1.0, 2.0};
    const double weight = weights[random.below(3)];
    const auto rate = [&](double most) { return random.chance(0.6) ? most * weight : 0.0; };
    Troubles troubles{.faults = {.request_lost = rate(0.02),
                                 .answer_lost = rate(0.03),
                                 .request_late = rate(0.03),
                                 .delivered_again = rate(0.2),
                                 .any_past_request = rate(0.1),
                                 .error_without_effect = rate(0.02),
                                 .error_with_effect = rate(0.02),
                                 .answered_again = rate(0.03),
                                 .slow_request = rate(0.1),
                                 .slow_answer = rate(0.1),
                                 .throttled = rate(0.005),
                                 .read_failed = rate(0.01),
                                 .small_page = rate(0.3)}};
    if (random.chance(0.5)) troubles.kill = 0.002 * weight;
    if (random.chance(0.4)) troubles.pause = 0.001 * weight;
    if (random.chance(0.6)) {
        troubles.clock_offset_max = 90s;
        troubles.clock_drift_max = 0.02;
        troubles.clock_jump = 0.002;
    }
    troubles.way_max = random.chance(0.3) ? 40ms : 2ms;
    return troubles;
}

namespace detail {

SimulatedWorld::SimulatedWorld(std::uint64_t seed, const Troubles& troubles, std::uint64_t requests_max)
    : scheduler_(seed),
      random_(seed + 1),
      clock_(scheduler_),
      network_({clock_, random_}, {}, troubles.times),
      seed_(seed),
      troubles_(troubles),
      requests_max_(requests_max) {}

void SimulatedWorld::begin_troubles() {
    has_troubles_ = true;
    network_.set_rates(troubles_.faults);
}

void SimulatedWorld::end_troubles() {
    has_troubles_ = false;
    network_.set_rates({});
    network_.deliver_everything();
}

Duration SimulatedWorld::random_offset() {
    return random_up_to(2 * troubles_.clock_offset_max) - troubles_.clock_offset_max;
}

std::unique_ptr<SimulatedWorld::Process> SimulatedWorld::start(std::shared_ptr<store::ItemStore> store,
                                                               const Disguise& disguise) {
    const Duration offset = random_offset();
    const double drift = troubles_.clock_drift_max * (static_cast<double>(random_.below(2001)) / 1000.0 - 1.0);
    return start(SkewedClock{scheduler_, offset, drift}, std::move(store), disguise);
}

std::unique_ptr<SimulatedWorld::Process> SimulatedWorld::start_calmly(std::shared_ptr<store::ItemStore> store,
                                                                      const Disguise& disguise) {
    return start(SkewedClock{scheduler_, 0s, 0}, std::move(store), disguise);
}

std::unique_ptr<SimulatedWorld::Process> SimulatedWorld::start(const SkewedClock& clock,
                                                               std::shared_ptr<store::ItemStore> store,
                                                               const Disguise& disguise) {
    auto process = std::unique_ptr<Process>(
        new Process{.clock = clock,
                    .store = std::make_shared<FaultyStore>(std::move(store), network_, disguise),
                    .executor = SimulatedExecutor{scheduler_, 2},
                    .threads = SimulatedThreads{scheduler_},
                    .random = SeededRandom{random_.next()}});
    process->store->on_request(
        [this, &process = *process](const RequestInfo& request) { return on_request(process, request); });
    return process;
}

ApplicationOptions SimulatedWorld::in(Process& process, ApplicationOptions options) {
    options.runtime = {process.clock, process.random, quiet_, process.threads};
    options.executor = &process.executor;
    return options;
}

double SimulatedWorld::meet(const RequestInfo& request) {
    // Most requests are reads, many of them of whoever looks for work; it is the others that matter.
    switch (request.kind) {
        case RequestInfo::Kind::changes: return 0.1;
        case RequestInfo::Kind::read:
        case RequestInfo::Kind::query:
        case RequestInfo::Kind::scan: return 0.3;
        case RequestInfo::Kind::write:
        case RequestInfo::Kind::write_atomically: break;
    }
    return 6;
}

Next SimulatedWorld::on_request(Process& process, const RequestInfo& request) {
    const double often = meet(request);
    if (process.is_dead()) return Next::stop;
    const bool is_before = request.moment == RequestInfo::Moment::before;
    if (is_before) scheduler_.note(static_cast<std::uint64_t>(request.kind) << 32 | request.number);
    if (network_.counts().requests > requests_max_) scheduler_.halt();
    const bool is_chosen =
        process.killed_at && process.killed_at->request == request.number && process.killed_at->applied != is_before;
    if (is_chosen || (has_troubles_ && random_.chance(troubles_.kill * often))) {
        process.death.request_stop();
        ++kills_;
        note_kill();
        return Next::stop;
    }
    if (!has_troubles_) {
        scheduler_.step();
        return Next::proceed;
    }
    if (random_.chance(troubles_.clock_jump)) process.clock.jump_to(random_offset());
    if (random_.chance(troubles_.pause * often)) {
        note_pause();
        scheduler_.sleep(random_up_to(troubles_.pause_max));
    } else if (is_before && random_.chance(0.5)) {
        scheduler_.sleep(random_up_to(troubles_.way_max));
    } else {
        scheduler_.step();
    }
    return process.is_dead() ? Next::stop : Next::proceed;
}

}  // namespace detail
}  // namespace varve::testing
