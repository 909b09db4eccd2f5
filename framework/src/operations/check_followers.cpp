#include "commands/build.h"
#include "commands/checkpoint.h"
#include "commands/parked_row.h"
#include "commands/stream_row.h"
#include "commands/timers.h"
#include "feed/feed.h"
#include "operations/check_run.h"
#include "rows/index_entries.h"
#include "rows/stored_rows.h"
#include "transactions/in_turn.h"
#include "transactions/reader.h"

#include <varve/core/error.h>

#include <algorithm>
#include <set>
#include <utility>

namespace varve::operations {

using namespace transactions;

namespace {

constexpr int rounds_max = 5;  // until a checkpoint and what belongs to it have held still
constexpr const char* groups = detail::StreamRow::groups;

template <class Row>
store::Key key_of(const RowKey& key) {
    return detail::stored_key(detail::row_table<Row>, key);
}

/// The data of a record that is there as it was read, without a look through its claim.
const std::string* data_of(const store::Record& record) {
    return store::text(record.item, "data");
}

template <class Row>
std::optional<Row> decoded(const store::Key& key, const Image& image) {
    if (!image.data) return std::nullopt;
    return detail::decode_row<Row>(detail::row_key(key), *image.data);
}

bool is_replaced(const detail::Builds& builds, std::int64_t number) {
    return std::ranges::any_of(builds.replaced,
                               [&](const detail::ReplacedBuild& one) { return one.build.number == number; });
}

bool has_table(const detail::Build& build, std::string_view table) {
    return std::ranges::any_of(build.tables, [&](const detail::BuildTable& one) { return one.name == table; });
}

/// Whether a follower's rows beside its checkpoint are those of a build that was replaced: these go one by one.
bool is_of_replaced(CheckRun& run, const std::string& follower) try {
    const auto [name, number, partition] = detail::split_name(follower);
    const store::Key key = detail::builds_key(name);
    if (!run.knows(key.table)) return false;
    return is_replaced(detail::decode_builds(name, run.image(key).data), number);
} catch (const CorruptionError&) {
    return true;  // nobody knows
}

/// Up to where followers can have come; nullopt: nobody can follow here.
std::optional<store::Position> end_of_feed(CheckRun& run) try {
    return feed::Feed{run.store}.end();
} catch (const ConfigError&) {
    return std::nullopt;
} catch (const CorruptionError&) {  // found in the log
    return std::nullopt;
}

std::int64_t parked_streams(CheckRun& run, const std::string& follower) {
    const std::string table{detail::ParkedRow::table};
    if (!run.knows(table)) return 0;  // nobody ever was
    const Reader::FoundRange parked =
        run.parts.coordinator.reader().range({.table = table, .partition = follower}, Isolation::committed);
    return std::ranges::count_if(parked.rows, [](const Reader::FoundRow& row) { return row.image.data.has_value(); });
}

void look_at_checkpoint(CheckRun& run, const store::Record& record) {
    const std::string& name = record.key.partition;
    for (int i = 0; i < rounds_max; ++i) {
        const Image seen = run.image(record.key);
        const std::optional<detail::Checkpoint> checkpoint = decoded<detail::Checkpoint>(record.key, seen);
        if (!checkpoint) return;
        if (checkpoint->position < 0 || checkpoint->events < 0 || checkpoint->parked < 0 || checkpoint->retries < 0)
            throw CorruptionError("the checkpoint has a number below 0");
        if (const std::optional<store::Position> end = end_of_feed(run);
            end && static_cast<store::Position>(checkpoint->position) > *end) {
            run.find(
                "checkpoint", record.key,
                "it is at " + std::to_string(checkpoint->position) + ", and the events end at " + std::to_string(*end));
        }
        const std::int64_t count = parked_streams(run, name);
        if (count == checkpoint->parked) return;
        // A stream is set aside, and taken up, together with the checkpoint.
        if (run.image(record.key) != seen) continue;
        if (is_of_replaced(run, name)) return;
        if (run.image(record.key) != seen) continue;
        run.find("parked", record.key,
                 "it says that " + std::to_string(checkpoint->parked) + " streams are set aside, and there are " +
                     std::to_string(count));
        return;
    }
}

void look_at_parked(CheckRun& run, const store::Record& record) {
    const auto row = detail::decode_row<detail::ParkedRow>(detail::row_key(record.key), *data_of(record));
    const store::Key checkpoint = key_of<detail::Checkpoint>(record.key.partition);
    const store::Key both[] = {record.key, checkpoint};
    if (run.knows(checkpoint.table) && run.image(checkpoint).data) return;
    const auto images = run.knows(checkpoint.table) ? run.at_one_moment(both) : std::optional<std::vector<Image>>{};
    if (images && images->front().data && !images->back().data)
        run.find("parked", record.key, "no follower of this name has ever come so far");
    const std::optional<store::Position> end = end_of_feed(run);
    if (end && row.position > 0 && static_cast<store::Position>(row.position) > *end)
        run.find("parked", record.key, "it is at " + std::to_string(row.position) + ", beyond the end of the events");
}

void look_at_group(CheckRun& run, const store::Record& record) {
    const store::Query first{
        .table = record.key.table, .partition = std::get<std::string>(record.key.sort), .limit = 1};
    if (run.parts.coordinator.reader().range(first, Isolation::committed, 1).rows.empty() && run.image(record.key).data)
        run.find("streams", record.key, "no stream of this group is in the list");
}

void look_at_stream(CheckRun& run, const store::Record& record) {
    static_cast<void>(detail::decode_row<detail::StreamRow>(detail::row_key(record.key), *data_of(record)));
    if (record.key.partition == groups) return look_at_group(run, record);
    if (record.key.partition != detail::StreamRow::group_of(std::get<std::string>(record.key.sort)))
        throw CorruptionError("the stream is of another group");
}

/// That there are such streams, and that their groups are in the list, too.
void look_at_streams(CheckRun& run, const std::vector<store::Record>& page) {
    std::vector<store::Key> slots;
    std::vector<const store::Record*> of;
    std::set<std::string> listed;  // groups
    for (const store::Record& record : page) {
        const auto* const name = std::get_if<std::string>(&record.key.sort);
        if (name == nullptr || record.key.partition == groups || data_of(record) == nullptr) continue;
        slots.push_back(slot_key(*name, 1));
        of.push_back(&record);
        if (listed.contains(record.key.partition)) continue;
        if (run.image(key_of<detail::StreamRow>({groups, record.key.partition})).data) {
            listed.insert(record.key.partition);
        } else if (run.image(record.key).data) {
            run.find("streams", record.key, "its group is not in the list");
        }
    }
    read_in_turn(run.store, slots, [&](std::size_t i, const std::optional<store::Item>& item) {
        if (item && committed_by(*item) != nullptr) return;
        if (run.is_committed(slots[i]) == false && run.image(of[i]->key).data)
            run.find("streams", of[i]->key, "there is no such stream");
    });
}

void look_at_timer(CheckRun& run, const store::Record& record) {
    const auto row = detail::decode_row<detail::TimerRow>(detail::row_key(record.key), *data_of(record));
    const auto& sort = std::get<std::string>(record.key.sort);
    const std::size_t slash = record.key.partition.rfind('/');
    const auto place = detail::TimerPlace::of(record.key.partition.substr(0, slash) + "/" + sort);
    if (!place || place->row() != detail::row_key(record.key) || !sort.starts_with(to_string(row.due) + "/")) {
        run.find("timer", record.key, "it stands at another time than it is due, " + to_string(row.due));
        return;
    }
    const store::Key bucket = key_of<detail::TimerBucket>(place->bucket());
    if (!run.knows(bucket.table)) return run.find("timer", record.key, "its bucket is not in the list");
    const store::Key both[] = {record.key, bucket};
    if (run.image(bucket).data) return;
    const std::optional<std::vector<Image>> images = run.at_one_moment(both);
    if (images && images->front().data && !images->back().data)
        run.find("timer", record.key, "its bucket is not in the list, so nobody looks for it");
}

void look_at_bucket(CheckRun& run, const store::Record& record) {
    const auto row = detail::decode_row<detail::TimerBucket>(detail::row_key(record.key), *data_of(record));
    if (to_string(row.first).starts_with(std::get<std::string>(record.key.sort) + ":00.")) return;
    run.find("timer", record.key, "the bucket says that it begins at " + to_string(row.first));
}

void look_at_builds(CheckRun& run, const store::Record& record) {
    const detail::Builds builds = detail::decode_builds(record.key.partition, *data_of(record));
    std::set<std::int64_t> numbers;
    bool is_fine = builds.last >= 1;
    const auto look = [&](const detail::Build& build) {
        is_fine = is_fine && build.number >= 1 && build.number <= builds.last && build.partitions >= 1 &&
                  numbers.insert(build.number).second;
    };
    look(builds.live);
    if (builds.next) look(*builds.next);
    for (const detail::ReplacedBuild& one : builds.replaced) look(one.build);
    if (!is_fine) run.find("build", record.key, "its builds are not numbered from 1 to " + std::to_string(builds.last));
    if (builds.next && builds.next->version < builds.live.version)
        run.find("build", record.key, "the next build is of a version below the live one");
}

}  // namespace

std::map<std::string, detail::Builds> all_builds(CheckRun& run) {
    std::map<std::string, detail::Builds> all;
    const std::string table{detail::Builds::table};
    if (!run.knows(table)) return all;
    store::Scan scan{.table = table};
    do {
        store::Page page = run.store.scan(scan);
        for (const store::Record& record : page.records) {
            try {
                all.insert_or_assign(record.key.partition,
                                     detail::decode_builds(record.key.partition, run.image(record.key).data));
            } catch (const CorruptionError&) {  // found where it is met
            }
        }
        scan.next = std::move(page.next);
    } while (scan.next);
    return all;
}

bool is_being_emptied(CheckRun& run, std::string_view table) {
    const auto [name, number] = detail::split_build_table(table);
    for (const auto& [follower, builds] : all_builds(run)) {
        for (const detail::ReplacedBuild& one : builds.replaced) {
            if (one.build.number == number && has_table(one.build, name)) return true;
        }
    }
    return false;
}

void check_left_of_builds(CheckRun& run, const std::string& table, const std::vector<store::Record>& page) {
    const auto [name, number] = detail::split_build_table(table);
    if (!detail::is_name_of_build_table(table)) return;
    for (const store::Record& record : page) {
        if (data_of(record) == nullptr) continue;
        const Image seen = run.image(record.key);
        if (!seen.data) continue;
        bool is_named = false;
        for (const auto& [follower, builds] : all_builds(run)) {
            const auto is_it = [&, number = number, name = name](const detail::Build& build) {
                is_named = is_named || (build.number == number && has_table(build, name));
            };
            is_it(builds.live);
            if (builds.next) is_it(*builds.next);
            for (const detail::ReplacedBuild& one : builds.replaced) is_it(one.build);
        }
        if (is_named) return;  // and so are the others
        if (run.image(record.key) == seen)
            run.find("build", record.key, "it is a row of a build that there is not, and nobody will erase it");
    }
}

void check_own_rows(CheckRun& run, std::string_view table, const std::vector<store::Record>& page) {
    using Look = void (*)(CheckRun&, const store::Record&);
    static const std::map<std::string_view, Look> looks{
        {detail::Checkpoint::table, look_at_checkpoint},
        {detail::ParkedRow::table, look_at_parked},
        {detail::StreamRow::table, look_at_stream},
        {detail::TimerRow::table, look_at_timer},
        {detail::TimerBucket::table, look_at_bucket},
        {detail::TimerAside::table,
         [](CheckRun&, const store::Record& record) {
             static_cast<void>(detail::decode_row<detail::TimerAside>(detail::row_key(record.key), *data_of(record)));
         }},
        {detail::Builds::table, look_at_builds}};
    if (table == detail::StreamRow::table) look_at_streams(run, page);
    const auto look = looks.find(table);
    if (look == looks.end()) return;
    for (const store::Record& record : page) {
        if (data_of(record) != nullptr) readable(run, record.key, [&] { look->second(run, record); });
    }
}

}  // namespace varve::operations
