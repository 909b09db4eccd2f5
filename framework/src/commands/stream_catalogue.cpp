#include "commands/stream_catalogue.h"

#include "commands/advance.h"
#include "commands/application_parts.h"
#include "commands/stream_row.h"
#include "commands/workspace.h"
#include "core/utf8.h"
#include "rows/stored_rows.h"
#include "transactions/paging.h"

#include <varve/commands/stream_list.h>
#include <varve/core/error.h>

#include <map>
#include <utility>

namespace varve::detail {

using namespace transactions;

namespace {

constexpr std::size_t slots_at_once = 1000;

constexpr const char* groups = StreamRow::groups;

void note(Transaction& tx, const RecordedEvent& event) {
    if (event.index > 0) return;
    const RowsInTransaction<StreamRow> rows = tx.rows<StreamRow>();
    const std::string group = StreamRow::group_of(event.stream);
    if (!rows.get({groups, group})) rows.put({groups, group}, {event.time});
    rows.put({group, event.stream}, {event.time});
}

void read_ahead(Transaction& tx, std::span<const RecordedEvent> events) {
    tx.rows<StreamRow>();  // the table is there
    std::map<store::Key, Image> rows;
    for (const RecordedEvent& event : events) {
        const std::string group = StreamRow::group_of(event.stream);
        rows.try_emplace(stored_key(row_table<StreamRow>, {groups, group}));
        rows.try_emplace(stored_key(row_table<StreamRow>, {group, event.stream}));
    }
    Workspace::of(tx).read_ahead({}, rows);
}

/// Those with the prefix in one group.
RowRange range_of(std::string partition, std::string_view prefix) {
    return {
        .partition = std::move(partition), .first = std::string{prefix}, .last = after_all_with(std::string{prefix})};
}

}  // namespace

StreamCatalogue::StreamCatalogue(ApplicationParts& parts)
    : parts_(parts),
      consumer_{.name = StreamRow::follower,
                .filter = {.first_slots = true},
                .options = {},
                .project = note,
                .read_ahead = read_ahead,
                .handle = {}} {}

void StreamCatalogue::catch_up() {
    const MutexLock lock{mutex_};
    if (!feed_) feed_.emplace(*parts_.store);
    if (seen_ == 0) {
        checkpoint_ = parts_.application.rows<Checkpoint>().get(consumer_.name).value_or(Checkpoint{});
        seen_ = static_cast<store::Position>(checkpoint_.position);
    }
    if (!parts_.awaited_in_order.exchange(true)) parts_.sequencer.wake();
    if (!feed_->wait_for({}, parts_.options.runtime.clock, until_it_is_over())) {
        throw UnavailableError(
            "the streams cannot be listed: what was written lately is not in order yet. Any application on this store "
            "that sweeps (ApplicationOptions::sweep) puts it in order; let one run, and ask again");
    }
    const bool has_more = take_until(feed_->end());
    // What was held meanwhile may have been put into place behind that end, but not behind this one.
    if (has_more) take_until(feed_->end());
}

SteadyTime StreamCatalogue::until_it_is_over() const {
    return parts_.options.runtime.clock.get().until(2 * parts_.options.transactions.lease + std::chrono::seconds{1});
}

bool StreamCatalogue::take_until(store::Position end) {
    checkpoint_.check("the checkpoint of the list of streams", end);
    if (seen_ >= end) return false;
    while (seen_ < end) {
        const feed::Batch batch = feed_->read(seen_, slots_at_once, consumer_.filter);
        if (batch.held) {
            const Receipt begins{.transaction = {}, .written = {{*batch.held, 1}}};
            if (parts_.put_in_place(begins, until_it_is_over())) continue;
            throw UnavailableError("the streams cannot be listed: a transaction that begins the stream '" +
                                   *batch.held + "' is still undecided; ask again");
        }
        if (batch.is_last) break;
        take(batch);
    }
    return true;
}

void StreamCatalogue::take(const feed::Batch& batch) {
    constexpr store::Position unsaved_max = 1000;
    if (batch.events.empty() && batch.end - static_cast<store::Position>(checkpoint_.position) < unsaved_max) {
        seen_ = batch.end;
        return;
    }
    checkpoint_ = advance(parts_.application, consumer_, checkpoint_, batch).checkpoint;
    seen_ = static_cast<store::Position>(checkpoint_.position);
}

StreamListPage StreamCatalogue::page(std::string_view prefix, const PageOptions& options) {
    if (find_invalid_utf8(prefix) != std::string_view::npos)
        throw InvalidError("the streams cannot be listed: the beginning of their names is not UTF-8");
    const std::string list =
        prefix.empty() ? "all streams" : "the streams that begin with '" + std::string{prefix} + "'";
    const std::optional<std::string> at = continued(list, options);
    std::string group;
    std::string next;  // within the group
    if (at) {
        const std::size_t space = at->rfind(' ');
        if (space == std::string::npos) throw_foreign_token(list, options);
        group = at->substr(0, space);
        next = at->substr(space + 1);
    } else {
        catch_up();
    }

    const Rows<StreamRow> rows = parts_.application.rows<StreamRow>();
    StreamListPage page;
    const auto add = [&](const std::string& from) {
        const std::size_t room = options.limit - page.streams.size();
        if (room == 0) {
            page.next = token(list, from + " ");
            return;
        }
        const RowRange range = from.size() > prefix.size() ? RowRange{.partition = from} : range_of(from, prefix);
        RowPage<StreamRow> found = rows.range(range, {.limit = room, .next = std::exchange(next, {})});
        for (RowOf<StreamRow>& row : found.rows) {
            if (row.key.sort.starts_with(prefix))
                page.streams.push_back({.name = std::move(row.key.sort), .since = row.value.since});
        }
        if (!found.next.empty()) page.next = token(list, from + " " + found.next);
    };
    if (const std::size_t dash = prefix.find('-'); dash != std::string_view::npos) {
        add(std::string{prefix.substr(0, dash + 1)});
        return page;
    }
    RowRange range = range_of(groups, prefix);
    if (at) range.first = group;
    for (const RowOf<StreamRow>& row : rows.range(range)) {
        if (!row.key.sort.starts_with(prefix)) break;
        if (row.key.sort != group) next.clear();  // of a group that is gone
        add(row.key.sort);
        if (!page.next.empty()) break;
    }
    return page;
}

}  // namespace varve::detail
