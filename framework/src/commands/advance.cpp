#include "commands/advance.h"

#include "commands/application_parts.h"
#include "commands/workspace.h"
#include "core/planted_faults.h"

#include <varve/commands/application.h>
#include <varve/core/error.h>

namespace varve::detail {

void Checkpoint::check(const std::string& whose, std::uint64_t end) const {
    if (static_cast<std::uint64_t>(position) <= end) return;
    throw CorruptionError(whose + " is at " + std::to_string(position) + ", and the events end at " +
                          std::to_string(end) + ": the store was put back to an older state without the table '" +
                          std::string{table} + "'; put that back, too");
}

std::optional<Checkpoint> checkpoint_of(Transaction& tx, const Consumer& consumer) {
    std::optional<Checkpoint> found = tx.rows<Checkpoint>().get(consumer.name);
    if (found || !consumer.build) return found;
    const BuildOf& build = *consumer.build;
    Builds builds = tx.rows<Builds>().get(build.follower).value_or(Builds{});
    if (builds.written_by(build) != nullptr) return std::nullopt;
    if (consumer.project) throw_replaced(build, builds);
    throw_split(build, builds);
}

Advance advance(Application& application, const Consumer& consumer, const Checkpoint& left, const feed::Batch& batch,
                const std::vector<Aside>& aside, const std::vector<store::Key>& likely) {
    Advance result{.checkpoint = left, .is_own = true};
    Checkpoint& after = result.checkpoint;
    const auto note = [&](std::size_t taken) {
        const std::vector<RecordedEvent>& events = batch.events;
        const bool is_all = taken == events.size() || planted(PlantedFault::a_part_is_taken_for_the_batch);
        after.position = static_cast<std::int64_t>(is_all ? batch.end : events[taken - 1].position);
        after.events += static_cast<std::int64_t>(taken);
        if (taken > 0) after.last = events[taken - 1].time;
        after.error.clear();
    };
    const auto body = [&](Transaction& tx) {
        Workspace& work = Workspace::of(tx);
        work.read_ahead(likely);
        const RowsInTransaction<Checkpoint> checkpoints = tx.rows<Checkpoint>();
        after = checkpoint_of(tx, consumer).value_or(Checkpoint{});
        result.is_own = after.is_as(left) || planted(PlantedFault::a_checkpoint_moves_wherever_it_is);
        if (!result.is_own) return;
        note(consumer.project_some(tx, batch.events, parts_of(application).coordinator.store().capabilities()));
        for (const Aside& one : aside) {
            const RowsInTransaction<ParkedRow> rows = tx.rows<ParkedRow>();
            const RowKey key{consumer.name, one.stream};
            if (rows.get(key)) continue;  // what it says is older, and so comes first
            ParkedRow row = one.row;
            row.since = tx.now();
            rows.put(key, row);
            ++after.parked;
        }
        if (!planted(PlantedFault::a_checkpoint_moves_after_its_rows)) checkpoints.put(consumer.name, after);
        result.rows.clear();
        for (const auto& [key, row] : work.rows()) result.rows.push_back(key);
    };
    if (consumer.ephemeral) {
        note(batch.events.size());
    } else {
        own_transaction(application, body).value();
    }
    if (planted(PlantedFault::a_checkpoint_moves_after_its_rows)) {
        own_transaction(application, [&](Transaction& tx) { tx.rows<Checkpoint>().put(consumer.name, after); }).value();
    }
    return result;
}

}  // namespace varve::detail
