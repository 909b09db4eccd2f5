#include "commands/build_swap.h"

#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "core/planted_faults.h"

#include <algorithm>
#include <set>
#include <string>

namespace varve::detail {

namespace {

using Streams = std::set<std::string, std::less<>>;

void add_parked_streams(Streams& streams, Transaction& tx, const std::string& name, const Checkpoint& of) {
    if (of.parked == 0) return;
    for (const RowOf<ParkedRow>& row : tx.rows<ParkedRow>().range({.partition = name})) streams.insert(row.key.sort);
}

/// Takes what is left up to `goal`, as far as it fits.
void take(Transaction& tx, const Consumer& next, const feed::Feed& feed, Checkpoint& own, std::int64_t goal,
          const Streams& aside, const store::Capabilities& capabilities) {
    bool is_all = true;
    std::size_t slots_left = next.options.batch_max;
    while (is_all && slots_left > 0) {  // a read may end early, with a piece of the log
        const auto from = static_cast<store::Position>(own.position);
        feed::Batch batch = feed.read(from, slots_left, next.filter);
        std::erase_if(batch.events, [&](const RecordedEvent& event) { return aside.contains(event.stream); });
        const std::size_t taken = next.project_some(tx, batch.events, capabilities);
        is_all = taken == batch.events.size();
        own.position = static_cast<std::int64_t>(is_all ? batch.end : batch.events[taken - 1].position);
        own.events += static_cast<std::int64_t>(taken);
        if (taken > 0) own.last = batch.events[taken - 1].time;
        if (batch.is_last || own.position >= goal) break;
        slots_left -= std::min<std::size_t>(slots_left, batch.end - from);
    }
    own.error.clear();
}

}  // namespace

bool try_to_swap(Application& application, std::span<const Consumer> next) {
    const feed::Feed feed{parts_of(application).coordinator.store()};
    const BuildOf& build = *next.front().build;
    bool is_live = false;
    const auto body = [&](Transaction& tx) {
        is_live = false;
        const RowsInTransaction<Builds> rows = tx.rows<Builds>();
        Builds before = rows.get(build.follower).value_or(Builds{});
        if (before.paused || !before.next || before.written_by(build) != &*before.next) return;

        const RowsInTransaction<Checkpoint> checkpoints = tx.rows<Checkpoint>();
        const std::string live_name = build_name(build.follower, before.live.number);
        std::int64_t goal = 0;  // a stream may be in any partition of the live build
        Streams live_aside;
        for (feed::Partition one{.number = 1, .of = before.live.partitions}; one.number <= one.of; ++one.number) {
            const std::string name = partition_name(live_name, one);
            const Checkpoint live = checkpoints.get(name).value_or(Checkpoint{});
            goal = std::max(goal, live.position);
            add_parked_streams(live_aside, tx, name, live);
        }
        std::vector<Checkpoint> own;
        Streams aside;
        for (const Consumer& one : next) {
            own.push_back(checkpoints.get(one.name).value_or(Checkpoint{}));
            add_parked_streams(aside, tx, one.name, own.back());
        }
        if (!std::ranges::includes(live_aside, aside)) return;

        for (std::size_t i = 0; i < next.size(); ++i) {
            take(tx, next[i], feed, own[i], goal, aside, parts_of(application).coordinator.store().capabilities());
            checkpoints.put(next[i].name, own[i]);
        }
        const bool is_behind = std::ranges::any_of(own, [&](const Checkpoint& one) { return one.position < goal; });
        if (is_behind && !planted(PlantedFault::a_build_becomes_live_that_is_behind)) return;

        Builds after = rows.get(build.follower).value_or(before);  // with the tables that were met just now
        after.swap(tx.now() + next.front().options.replaced_rows_kept_for);
        rows.put(build.follower, after);
        is_live = true;
    };
    own_transaction(application, body).value();
    return is_live;
}

}  // namespace varve::detail
