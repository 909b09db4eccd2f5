#include "commands/timers.h"

#include "commands/application_parts.h"

#include <varve/operations/timers.h>

#include <algorithm>
#include <tuple>
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
    std::vector<StoredTimer> found;  // a heap, of the earliest: the latest of them is in front
    const auto is_earlier = [](const StoredTimer& a, const StoredTimer& b) {
        return std::tie(a.due, a.id) < std::tie(b.due, b.id);
    };
    const auto keep = [&](StoredTimer timer) {
        found.push_back(std::move(timer));
        std::ranges::push_heap(found, is_earlier);
        if (found.size() <= timers_max) return;
        std::ranges::pop_heap(found, is_earlier);
        found.pop_back();
    };
    for (const RowOf<TimerAside>& row : application.rows<TimerAside>().all()) {
        StoredTimer timer = stored(row.key.partition, row.key.sort, row.value.timer);
        timer.error = row.value.error;
        timer.failed = row.value.since;
        keep(std::move(timer));
    }
    for (const RowOf<TimerRow>& row : application.rows<TimerRow>().all()) {
        const std::string& bucket = row.key.partition;  // FOLLOWER/MINUTE
        keep(stored(bucket.substr(0, bucket.rfind('/')), row.key.sort, row.value));
    }
    std::ranges::sort_heap(found, is_earlier);
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
