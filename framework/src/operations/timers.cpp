#include "commands/timers.h"

#include "commands/application_parts.h"

#include <varve/operations/timers.h>

#include <algorithm>
#include <utility>

namespace varve::operations {

using namespace detail;

namespace {

StoredTimer stored(const std::string& follower, const std::string& due_and_unique, const TimerRow& row) {
    return {.id = TimerPlace{follower, due_and_unique}.id(),
            .follower = follower,
            .instance = row.instance,
            .type = row.type,
            .due = row.due,
            .error = {},
            .failed = {}};
}

}  // namespace

std::vector<StoredTimer> timers(Application& application, std::size_t timers_max) {
    std::vector<StoredTimer> found;
    for (const RowOf<TimerAside>& row : application.rows<TimerAside>().all()) {
        if (found.size() == timers_max) break;
        StoredTimer& timer = found.emplace_back(stored(row.key.partition, row.key.sort, row.value.timer));
        timer.error = row.value.error;
        timer.failed = row.value.since;
    }
    for (const RowOf<TimerRow>& row : application.rows<TimerRow>().all()) {
        if (found.size() == timers_max) break;
        const std::string& bucket = row.key.partition;  // FOLLOWER/MINUTE
        found.push_back(stored(bucket.substr(0, bucket.rfind('/')), row.key.sort, row.value));
    }
    std::ranges::sort(found, {}, [](const StoredTimer& one) { return std::pair{one.due, one.id}; });
    return found;
}

bool drop_timer(Application& application, std::string_view id) {
    const std::optional<TimerPlace> place = TimerPlace::of(id);
    if (!place) throw InvalidError("'" + std::string{id} + "' is no timer's id");
    bool dropped = false;
    own_transaction(application, [&](Transaction& tx) { dropped = cancel_timer(tx, place->consumer, id); }).value();
    return dropped;
}

}  // namespace varve::operations
