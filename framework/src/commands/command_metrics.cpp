#include "commands/command_metrics.h"

#include <memory>
#include <new>

namespace varve::detail {

CommandMetrics::CommandMetrics() {
    others_.aggregate_ = "others";
    transactions_.aggregate_ = "*";
    own_.aggregate_ = "$own";
}

CommandMetrics::~CommandMetrics() {
    for (std::atomic<OfAggregate*>& one : by_aggregate_) delete one.load();
}

CommandMetrics::OfAggregate& CommandMetrics::of(std::string_view aggregate) noexcept {
    for (std::atomic<OfAggregate*>& place : by_aggregate_) {
        OfAggregate* there = place.load(std::memory_order_acquire);
        if (there == nullptr) {
            try {
                auto made = std::make_unique<OfAggregate>();
                made->aggregate_ = aggregate;
                if (place.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel)) return *made.release();
            } catch (const std::bad_alloc&) {
                return others_;
            }
        }
        if (there->aggregate_ == aggregate) return *there;
    }
    return others_;
}

void CommandMetrics::OfAggregate::count(End end) noexcept {
    ended_[static_cast<std::size_t>(end)].fetch_add(1, std::memory_order_relaxed);
}

void CommandMetrics::OfAggregate::ended(const std::optional<Outcome>& outcome, const std::exception_ptr& failure,
                                        Duration took) noexcept {
    duration_.record(took);
    if (failure) return count(end_of(failure));
    if (!*outcome) return count(End::rejected);
    count((*outcome)->repeated ? End::repeated : End::committed);
    if (!(*outcome)->repeated)
        committed_by_[static_cast<std::size_t>((*outcome)->rung)].fetch_add(1, std::memory_order_relaxed);
}

CommandMetrics::OfAggregate::End CommandMetrics::OfAggregate::end_of(const std::exception_ptr& failure) noexcept {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        if (error.in_doubt()) return End::in_doubt;
        switch (error.kind()) {
            case ErrorKind::conflict: return End::conflict;
            case ErrorKind::in_doubt: return End::in_doubt;
            case ErrorKind::overloaded: return End::overloaded;
            case ErrorKind::unavailable:
            case ErrorKind::busy:
            case ErrorKind::storage_full:
            case ErrorKind::read_only: return End::unavailable;
            default: return End::failed;
        }
    } catch (...) {
        return End::failed;
    }
}

const char* CommandMetrics::OfAggregate::to_string(End end) noexcept {
    switch (end) {
        case End::committed: return "committed";
        case End::repeated: return "repeated";
        case End::rejected: return "rejected";
        case End::conflict: return "conflict";
        case End::in_doubt: return "in_doubt";
        case End::unavailable: return "unavailable";
        case End::overloaded: return "overloaded";
        case End::failed: return "failed";
    }
    return "unknown";
}

std::vector<telemetry::Metric> CommandMetrics::metrics() const {
    using Kind = telemetry::Metric::Kind;
    telemetry::Metric ended{"varve_commands_total",
                            "Commands that have ended, by the kind of aggregate (*: transactions over any, $own: those "
                            "of followers and timers) and by how they ended.",
                            Kind::counter};
    telemetry::Metric rung{"varve_commands_committed_total",
                           "Commands that committed, by how far they had to go to get through.", Kind::counter};
    telemetry::Metric took{"varve_command_duration_seconds",
                           "How long commands took, all attempts together, the wait in a lane left out.",
                           Kind::histogram};
    const auto add = [&](const OfAggregate& one) {
        const std::pair<std::string, std::string> label{"aggregate", one.aggregate_};
        took.samples.push_back({{label}, one.duration_.value()});
        // All of them: who looks how much a counter grows misses the first time of one that was not there before.
        for (std::size_t i = 0; i < one.ended_.size(); ++i) {
            ended.samples.push_back({{label, {"outcome", OfAggregate::to_string(static_cast<OfAggregate::End>(i))}},
                                     static_cast<double>(one.ended_[i])});
        }
        for (std::size_t i = 0; i < one.committed_by_.size(); ++i) {
            rung.samples.push_back(
                {{label, {"rung", varve::to_string(static_cast<Rung>(i))}}, static_cast<double>(one.committed_by_[i])});
        }
    };
    for (const std::atomic<OfAggregate*>& one : by_aggregate_) {
        if (const OfAggregate* const there = one.load(std::memory_order_acquire)) add(*there);
    }
    if (others_.duration_.value().count() > 0) add(others_);
    add(transactions_);
    add(own_);
    return {std::move(ended),
            std::move(rung),
            std::move(took),
            {"varve_decide_duration_seconds",
             "How long attempts that came to commit took until then, reading and waiting for others included.",
             Kind::histogram,
             {{{}, decide.value()}}},
            {"varve_commit_duration_seconds",
             "How long they took from there on, however that ended.",
             Kind::histogram,
             {{{}, commit.value()}}},
            {"varve_lane_wait_duration_seconds",
             "How long commands waited in their lane for others, or for room in it; each wait.",
             Kind::histogram,
             {{{}, lane_wait.value()}}}};
}

}  // namespace varve::detail
