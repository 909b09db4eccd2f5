#include "reports.h"

#include <varve/locks/locks.h>
#include <varve/store/item.h>

#include <chrono>

namespace varve::console {

namespace {

/// "up to date" and the like: what the store says.
std::string state_of(const FollowerStatus& status) {
    if (status.state == FollowerStatus::State::stopped) return "stopped";
    if (status.state == FollowerStatus::State::building) return status.paused ? "rebuilt, paused" : "rebuilt";
    if (status.position >= status.end) return "up to date";
    return status.owner.empty() ? "nobody has it" : "catching up";
}

}  // namespace

EventReport report_of(const RecordedEvent& event) {
    return {.stream = event.stream,
            .version = event.version,
            .index = event.index,
            .id = event.id,
            .time = event.time,
            .type = event.event.type,
            .schema = event.event.schema,
            .data = {event.event.data},
            .metadata = *event.metadata,
            .position = event.position == 0 ? std::nullopt : std::optional{event.position}};
}

DiagnosisReport report_of(const operations::Diagnosis& diagnosis) {
    return {to_string(diagnosis.health), diagnosis.what, diagnosis.found, diagnosis.advice};
}

FollowerReport report_of(const FollowerStatus& status) {
    FollowerReport report{.name = status.name,
                          .state = state_of(status),
                          .position = status.position,
                          .end = status.end,
                          .events = status.events,
                          .parked = status.parked,
                          .owner = status.owner,
                          .error = status.error,
                          .version = status.version,
                          .build = status.build,
                          .partition = status.partition,
                          .partitions = status.partitions,
                          .paused = status.paused};
    if (status.lag) report.lag_seconds = std::chrono::duration<double>{*status.lag}.count();
    return report;
}

ParkedReport report_of(const std::string& follower, const ParkedStream& parked) {
    return {follower,     parked.stream, parked.version,  parked.type,    parked.id,
            parked.error, parked.since,  parked.attempts, parked.given_up};
}

LockReport report_of(const operations::StoredLock& lock) {
    const locks::Holder& holder = lock.state.holder;
    LockReport report{
        .lock = lock.name, .owner = holder.owner, .ticket = holder.ticket, .fence = holder.fence, .queue = {}};
    if (!holder.is_free()) report.expires = holder.expires;
    for (const Locks::State::Waiting& one : lock.state.queue) {
        if (one.ticket != holder.ticket) report.queue.push_back({one.ticket, one.row.owner, one.row.expires});
    }
    return report;
}

const char* name_of(transactions::Verdict verdict) {
    switch (verdict) {
        case transactions::Verdict::committed: return "committed";
        case transactions::Verdict::aborted: return "aborted";
        case transactions::Verdict::undecided: return "undecided";
    }
    return "undecided";
}

TransactionReport report_of(const operations::OpenTransaction& transaction) {
    TransactionReport report{.transaction = transaction.id,
                             .verdict = name_of(transaction.verdict),
                             .primary = store::to_string(transaction.primary),
                             .since = transaction.since,
                             .lease = transaction.lease,
                             .claims = {}};
    for (const store::Key& key : transaction.claims) report.claims.push_back(store::to_string(key));
    return report;
}

TimerReport report_of(const operations::StoredTimer& timer) {
    return {timer.id, timer.follower, timer.instance, timer.type, timer.due, timer.error, timer.failed};
}

}  // namespace varve::console
