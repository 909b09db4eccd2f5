#include "events/snapshot.h"

namespace varve::events {
namespace {

constexpr const char* version_attribute = "version";
constexpr const char* state_attribute = "state";

}  // namespace

const store::TableSchema& snapshots_table() {
    static const store::TableSchema schema{.name = "snapshots",
                                           .partition_attribute = "aggregateId",
                                           .sort_attribute = "schema",
                                           .sort = store::SortType::text};
    return schema;
}

store::Key snapshot_key(const std::string& stream, const std::string& schema) {
    return {snapshots_table().name, stream, schema};
}

std::optional<Snapshot> decode_snapshot(const std::optional<store::Item>& item) {
    if (!item) return std::nullopt;
    const std::int64_t* version = store::integer(*item, version_attribute);
    const std::string* state = store::text(*item, state_attribute);
    if (version == nullptr || state == nullptr || *version < 1) return std::nullopt;
    return Snapshot{*version, *state};
}

store::Write write_snapshot(const std::string& stream, const std::string& schema, const Snapshot& snapshot) {
    return {snapshot_key(stream, schema),
            store::Put{{{version_attribute, snapshot.version}, {state_attribute, snapshot.state}}},
            !store::item_exists() || store::less(version_attribute, snapshot.version)};
}

}  // namespace varve::events
