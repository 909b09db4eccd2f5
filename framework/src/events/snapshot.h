#pragma once

#include "transactions/slot.h"

#include <varve/store/item_store.h>

#include <optional>
#include <string>

namespace varve::events {

/// The table of snapshots: (aggregateId, schema).
const store::TableSchema& snapshots_table();

// An aggregate's state at one version of its stream, so that nobody need fold what came before. Each schema of the
// state has an item of its own, the newest:
//
//     snapshot := version state                (state: JSON text)
//
// `schema` is "VERSION-FINGERPRINT": the version that the aggregate's author gives to the meaning of its state, and 16
// hexadecimal digits of the shape of its fields. A program looks for its own schema only, and folds the whole stream if
// there is none. Snapshots repeat what the events say: any of them may be deleted at any time.
struct Snapshot {
    transactions::Version version = 0;
    std::string state;
};

store::Key snapshot_key(const std::string& stream, const std::string& schema);

/// Nullopt: there is none, or it is not readable.
std::optional<Snapshot> decode_snapshot(const std::optional<store::Item>& item);

/// Applied only if it is newer than the one that is there.
store::Write write_snapshot(const std::string& stream, const std::string& schema, const Snapshot& snapshot);

}  // namespace varve::events
