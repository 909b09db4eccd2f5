#include "events/snapshot.h"
#include "events/stored_slot.h"
#include "locks/stored_lock.h"
#include "operations/check_run.h"
#include "transactions/attributes.h"

#include <varve/core/error.h>
#include <varve/core/json.h>

namespace varve::operations {

using namespace transactions;

namespace {

void look_at_lock(CheckRun& run, const store::Record& record) {
    const std::string& name = record.key.partition;
    locks::Ticket ticket = 0;
    if (record.key == locks::counter_key(name)) {
        static_cast<void>(locks::decode_counter(record.key, record.item));
        return;
    }
    if (record.key == locks::holder_key(name)) {
        ++run.report.locks;
        ticket = locks::decode_holder(record.key, record.item).ticket;
    } else if (const std::optional<locks::Ticket> queued = locks::ticket_of(record.key)) {
        static_cast<void>(locks::decode_queued(record.key, record.item));
        ticket = *queued;
    } else {
        throw_damaged(record.key, "is no part of a lock");
    }
    // A ticket is drawn before anybody has it.
    const store::Key counter = locks::counter_key(name);
    try {
        const locks::Ticket drawn = locks::decode_counter(counter, run.item(counter));
        if (ticket <= drawn) return;
        run.find("lock", record.key,
                 "it has ticket " + std::to_string(ticket) + ", and the last one that was given is " +
                     std::to_string(drawn) + ": it will be given again");
    } catch (const CorruptionError&) {  // found where it is met
    }
}

void look_at_snapshot(CheckRun& run, const store::Record& record) {
    const auto snapshot = events::decode_snapshot(record.item);
    if (!snapshot || !json::decode<json::Raw>(snapshot->state)) throw_damaged(record.key, "is no snapshot");
    ++run.report.snapshots;
    const std::string& stream = record.key.partition;
    if (run.is_committed(slot_key(stream, snapshot->version)) == false) {
        run.find("snapshot", record.key,
                 "it is of version " + std::to_string(snapshot->version) + ", which the stream does not have");
        return;
    }
    const AggregateType* const type = run.parts.repository.known(events::aggregate_of(stream));
    if (type == nullptr || type->snapshots == nullptr ||
        record.key != events::snapshot_key(stream, type->snapshots->schema))
        return;
    try {
        const SnapshotCheck check = run.parts.repository.check_snapshot(*type, stream);
        if (!check.holds()) {
            run.find("snapshot", record.key,
                     "it says " + check.stored + ", and the events up to version " + std::to_string(check.version) +
                         " say " + check.folded);
        }
    } catch (const CorruptionError& error) {
        run.report.not_checked.push_back("the snapshot " + store::to_string(record.key) + ": " + error.what());
    }
}

}  // namespace

void check_locks(CheckRun& run) {
    run.each_page(locks::locks_table().name, [&](const std::vector<store::Record>& page) {
        for (const store::Record& record : page) readable(run, record.key, [&] { look_at_lock(run, record); });
    });
}

void check_snapshots(CheckRun& run) {
    run.each_page(events::snapshots_table().name, [&](const std::vector<store::Record>& page) {
        for (const store::Record& record : page) readable(run, record.key, [&] { look_at_snapshot(run, record); });
    });
}

}  // namespace varve::operations
