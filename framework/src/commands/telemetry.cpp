#include "commands/application_parts.h"

#include <varve/aggregates/cache_metrics.h>
#include <varve/commands/follower_status.h>
#include <varve/commands/lane_metrics.h>
#include <varve/core/error.h>
#include <varve/locks/metrics.h>
#include <varve/telemetry/metric.h>
#include <varve/transactions/metrics.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve {
namespace {

using telemetry::Counter;
using telemetry::Metric;
using telemetry::Sample;
using Kind = Metric::Kind;
using Labels = decltype(Sample::labels);

double number(const Counter& counter) {
    return static_cast<double>(counter.load(std::memory_order_relaxed));
}

Metric counter(std::string name, std::string help, const Counter& value) {
    return {std::move(name), std::move(help), Kind::counter, {{{}, number(value)}}};
}
Metric gauge(std::string name, std::string help, double value) {
    return {std::move(name), std::move(help), Kind::gauge, {{{}, value}}};
}

void add(std::vector<Metric>& all, std::vector<Metric> more) {
    std::ranges::move(more, std::back_inserter(all));
}

std::vector<Metric> of_transactions(const transactions::Metrics& metrics) {
    Metric attempts{"varve_attempts_total",
                    "Attempts of commands that got as far as to commit, by what came of it.",
                    Kind::counter,
                    {{{{"result", "committed"}}, number(metrics.committed)},
                     {{{"result", "conflict"}}, number(metrics.conflicts)},
                     {{{"result", "in_doubt"}}, number(metrics.in_doubt)}}};
    Metric paths{"varve_commits_total", "Attempts that committed, by how.", Kind::counter};
    for (std::size_t i = 0; i < metrics.committed_by.size(); ++i) {
        const char* const path = to_string(static_cast<transactions::Path>(i));
        paths.samples.push_back({{{"path", path}}, number(metrics.committed_by[i])});
    }
    return {std::move(attempts),
            std::move(paths),
            counter("varve_waits_total", "Times an attempt met another transaction and waited for it.", metrics.waits),
            counter("varve_fenced_total", "Transactions ended for whoever did not end them: dead ones above all.",
                    metrics.fenced),
            counter("varve_finalised_for_others_total",
                    "Slots and rows of other, committed transactions put into place.", metrics.finalised_for_others),
            counter("varve_undone_for_others_total", "Slots and rows of other, aborted transactions cleared.",
                    metrics.undone_for_others),
            counter("varve_swept_total", "Slots, rows and primaries that the sweeper settled.", metrics.swept)};
}

std::vector<Metric> of_cache(const aggregates::CacheMetrics& metrics) {
    return {counter("varve_cache_hits_total", "Times an aggregate's state was in the cache.", metrics.hits),
            counter("varve_cache_misses_total", "Times it was not.", metrics.misses),
            counter("varve_cache_evicted_total", "States dropped from the cache to make room.", metrics.evicted),
            gauge("varve_cache_entries", "States in the cache.", number(metrics.entries)),
            gauge("varve_cache_bytes", "What these take in memory, roughly.", number(metrics.bytes))};
}

std::vector<Metric> of_lanes(const LaneMetrics& metrics) {
    return {counter("varve_lane_commands_total", "Commands that went through lanes.", metrics.commands),
            counter("varve_lane_batches_total", "Batches that they went in, each committed as one.", metrics.batches),
            counter("varve_lane_refused_total", "Times a command met a full lane and was refused.", metrics.refused)};
}

/// Those of the user, and those that commands queue for that keep losing.
std::vector<Metric> of_locks(const locks::Metrics& users, const locks::Metrics& turns) {
    const auto both = [&](std::string name, std::string help, Kind kind, const Counter locks::Metrics::*of,
                          double unit = 1) {
        return Metric{
            std::move(name),
            std::move(help),
            kind,
            {{{{"use", "application"}}, number(users.*of) * unit}, {{{"use", "turns"}}, number(turns.*of) * unit}}};
    };
    using locks::Metrics;
    constexpr double microsecond = 1e-6;
    return {both("varve_locks_acquired_total",
                 "Times a lock was entered: by use, those of the application and its followers, and turns of commands "
                 "that keep losing.",
                 Kind::counter, &Metrics::acquired),
            both("varve_locks_given_up_total", "Waits for a lock that were over before its turn came.", Kind::counter,
                 &Metrics::gave_up),
            both("varve_locks_lost_total", "Locks that were lost while they were held.", Kind::counter, &Metrics::lost),
            both("varve_locks_waiting", "Those who wait for a lock now.", Kind::gauge, &Metrics::waiting),
            both("varve_locks_held", "Locks that are held now.", Kind::gauge, &Metrics::holding),
            both("varve_lock_wait_seconds_total", "How long all waited who entered.", Kind::counter,
                 &Metrics::waited_us, microsecond),
            both("varve_lock_hold_seconds_total", "How long all held what they no longer hold.", Kind::counter,
                 &Metrics::held_us, microsecond)};
}

std::vector<Metric> of_followers(const std::vector<FollowerStatus>& all) {
    Metric lag{"varve_follower_lag_seconds", "How old the last event is that a follower has taken; 0: it has seen all.",
               Kind::gauge};
    Metric left{"varve_follower_lag_positions", "What is stored and a follower has not seen, in writes of slots.",
                Kind::gauge};
    Metric taken{"varve_follower_events_total", "Events that a follower has taken, ever, in all processes.",
                 Kind::counter};
    Metric parked{"varve_follower_parked_streams", "Streams that a follower has set aside.", Kind::gauge};
    Metric stopped{"varve_follower_stopped", "1: it cannot go on.", Kind::gauge};
    Metric here{"varve_follower_runs_here", "1: this process has it.", Kind::gauge};
    for (const FollowerStatus& one : all) {
        using State = FollowerStatus::State;
        const Labels labels{
            {"follower", one.name}, {"build", std::to_string(one.build)}, {"partition", std::to_string(one.partition)}};
        const auto is = [&](bool holds) { return Sample{labels, holds ? 1.0 : 0.0}; };
        if (one.lag && one.state != State::building)
            lag.samples.push_back({labels, std::chrono::duration<double>{*one.lag}.count()});
        left.samples.push_back({labels, static_cast<double>(one.end - std::min(one.position, one.end))});
        taken.samples.push_back({labels, static_cast<double>(one.events)});
        parked.samples.push_back({labels, static_cast<double>(one.parked)});
        stopped.samples.push_back(is(one.state == State::stopped));
        here.samples.push_back(is(one.state != State::elsewhere && one.state != State::stopped));
    }
    return {std::move(lag), std::move(left), std::move(taken), std::move(parked), std::move(stopped), std::move(here)};
}

}  // namespace

std::vector<telemetry::Metric> Application::telemetry() {
    std::vector<Metric> all = parts_->metrics.metrics();
    add(all, of_transactions(parts_->coordinator.metrics()));
    add(all, of_lanes(parts_->lanes->metrics()));
    add(all, of_cache(parts_->repository.cache_metrics()));
    add(all, of_locks(parts_->locks.metrics(), parts_->turns.metrics()));
    bool is_up = true;
    try {
        add(all, of_followers(followers()));
    } catch (const Error&) {
        is_up = false;
    }
    add(all, parts_->store->metrics());
    all.push_back(gauge("varve_store_up", "0: the store did not say how the followers are doing.", is_up ? 1 : 0));
    return all;
}

}  // namespace varve
