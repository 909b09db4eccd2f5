#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/stream_row.h"
#include "feed/feed.h"

#include <varve/operations/streams.h>

#include <map>
#include <set>

namespace varve::operations {

namespace {

using detail::StreamRow;
using Unlisted = std::map<std::string, std::map<std::string, Time>, std::less<>>;  // by group, by name

/// Those that the stored list does not have yet.
Unlisted unlisted_streams(Application& application, std::string_view prefix) {
    const feed::Feed feed{*detail::parts_of(application).store};
    const auto listed = application.rows<detail::Checkpoint>().get(StreamRow::follower);
    Unlisted unlisted;
    for (store::Position at = listed ? static_cast<store::Position>(listed->position) : 0;;) {
        const feed::Batch batch = feed.read(at, 1000);
        for (const RecordedEvent& event : batch.events) {
            if (event.version == 1 && event.stream.starts_with(prefix))
                unlisted[StreamRow::group_of(event.stream)].try_emplace(event.stream, event.time);
        }
        if (batch.is_last) return unlisted;
        at = batch.end;
    }
}

}  // namespace

void each_stream(Application& application, std::string_view prefix,
                 const std::function<bool(const ListedStream& stream)>& found) {
    Unlisted unlisted = unlisted_streams(application, prefix);
    const Rows<StreamRow> rows = application.rows<StreamRow>();
    std::set<std::string> groups;
    for (const auto& [group, streams] : unlisted) groups.insert(group);
    for (const RowOf<StreamRow>& group : rows.range({StreamRow::groups})) groups.insert(group.key.sort);

    const auto tell = [&](const std::string& name, Time since) {
        return !name.starts_with(prefix) || found({.name = name, .since = since});
    };
    for (const std::string& group : groups) {
        if (!group.starts_with(prefix) && !prefix.starts_with(group)) continue;
        std::map<std::string, Time>& more = unlisted[group];
        RowRange range{.partition = group};
        if (prefix.size() > group.size()) range.first = prefix;
        for (const RowOf<StreamRow>& row : rows.range(range)) {
            while (!more.empty() && more.begin()->first < row.key.sort) {
                if (!tell(more.begin()->first, more.begin()->second)) return;
                more.erase(more.begin());
            }
            more.erase(row.key.sort);  // it has been listed meanwhile
            if (!row.key.sort.starts_with(range.first)) break;
            if (!tell(row.key.sort, row.value.since)) return;
        }
        for (const auto& [name, since] : more) {
            if (!tell(name, since)) return;
        }
    }
}

}  // namespace varve::operations
