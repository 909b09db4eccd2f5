#include "commands/build_swap.h"

#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "core/planted_faults.h"

#include <algorithm>
#include <set>
#include <string>

namespace varve::detail {

namespace {

std::set<std::string, std::less<>> parked_streams(Transaction& tx, const std::string& name, const Checkpoint& of) {
    std::set<std::string, std::less<>> streams;
    if (of.parked == 0) return streams;
    for (const RowOf<ParkedRow>& row : tx.rows<ParkedRow>().range({.partition = name})) streams.insert(row.key.sort);
    return streams;
}

}  // namespace

bool try_to_swap(Application& application, const Consumer& next) {
    const feed::Feed feed{application.store()};
    const BuildOf& build = *next.build;
    bool is_live = false;
    const auto body = [&](Transaction& tx) {
        is_live = false;
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        Builds before = rows.get(build.follower).value_or(Builds{});
        if (before.paused || !before.next || before.written_by(build) != &*before.next) return;

        const RowsInTransaction<Checkpoint> checkpoints = tx.rows<Checkpoint>();
        const std::string live_name = build_name(build.follower, before.live.number);
        const Checkpoint live = checkpoints.get(live_name).value_or(Checkpoint{});
        Checkpoint own = checkpoints.get(next.name).value_or(Checkpoint{});
        const auto aside = parked_streams(tx, next.name, own);
        if (!std::ranges::includes(parked_streams(tx, live_name, live), aside)) return;

        bool is_all = true;
        std::size_t slots_left = next.options.batch_max;
        while (is_all && slots_left > 0) {  // a read may end early, with a piece of the log
            const auto from = static_cast<store::Position>(own.position);
            feed::Batch batch = feed.read(from, slots_left, next.filter);
            std::erase_if(batch.events, [&](const RecordedEvent& event) { return aside.contains(event.stream); });
            const std::size_t taken = next.project_some(tx, batch.events, application.store().capabilities());
            is_all = taken == batch.events.size();
            own.position = static_cast<std::int64_t>(is_all ? batch.end : batch.events[taken - 1].position);
            own.events += static_cast<std::int64_t>(taken);
            if (taken > 0) own.last = batch.events[taken - 1].time;
            if (batch.is_last || own.position >= live.position) break;
            slots_left -= std::min<std::size_t>(slots_left, batch.end - from);
        }
        own.error.clear();
        checkpoints.put(next.name, own);
        if (own.position < live.position && !planted(PlantedFault::a_build_becomes_live_that_is_behind)) return;

        Builds after = rows.get(build.follower).value_or(before);  // with the tables that were met just now
        after.swap(tx.now() + next.options.replaced_rows_kept_for);
        rows.put(build.follower, after);
        is_live = true;
    };
    application.transact(body).value();
    return is_live;
}

}  // namespace varve::detail
