#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/stream_row.h"
#include "feed/feed.h"

#include <varve/operations/streams.h>

#include <algorithm>
#include <iterator>
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

namespace {

/// Of the stored list: the first `count` names that come after `after`, or are `first` or come after it.
std::vector<ListedStream> listed(Application& application, const ListedAsked& asked, std::size_t count) {
    const Rows<StreamRow> rows = application.rows<StreamRow>();
    std::vector<ListedStream> found;
    const std::string& first = std::max(asked.prefix, asked.after);
    for (const RowOf<StreamRow>& group : rows.range({StreamRow::groups})) {
        const std::string& name = group.key.sort;
        if (!name.starts_with(asked.prefix) && !asked.prefix.starts_with(name)) continue;
        if (name < first && !first.starts_with(name)) continue;  // all of it comes before
        RowRange range{.partition = name, .first = name < first ? first : std::string{}};
        PageOptions page{.limit = count + 1};
        do {
            RowPage<StreamRow> got = rows.range(range, page);
            for (RowOf<StreamRow>& row : got.rows) {
                if (!row.key.sort.starts_with(asked.prefix)) return found;
                if (row.key.sort != asked.after) found.push_back({std::move(row.key.sort), row.value.since});
                if (found.size() == count) return found;
            }
            page.next = std::move(got.next);
        } while (!page.next.empty());
    }
    return found;
}

}  // namespace

ListedPage StreamLister::page(const ListedAsked& asked) {
    if (asked.limit == 0) throw InvalidError("a page of the list of streams has room for none");
    ListedPage page;
    read_on(asked.patience, page);
    // Unlisted ones first: one that is put into the stored list meanwhile is then in both.
    const std::vector<ListedStream> more = unlisted(asked, asked.limit + 1);
    const std::vector<ListedStream> stored = listed(application_, asked, asked.limit + 1);
    std::ranges::set_union(stored, more, std::back_inserter(page.streams), {}, &ListedStream::name,
                           &ListedStream::name);
    page.has_more = page.streams.size() > asked.limit;
    if (page.has_more) page.streams.resize(asked.limit);
    return page;
}

std::vector<ListedStream> StreamLister::unlisted(const ListedAsked& asked, std::size_t count) {
    const MutexLock lock{mutex_};
    std::vector<ListedStream> found;
    const bool goes_on = asked.after >= asked.prefix && !asked.after.empty();
    for (auto at = goes_on ? unlisted_.upper_bound(asked.after) : unlisted_.lower_bound(asked.prefix);
         at != unlisted_.end() && found.size() < count && at->first.starts_with(asked.prefix); ++at)
        found.push_back({at->first, at->second});
    return found;
}

void StreamLister::read_on(Duration patience, ListedPage& page) {
    {
        const MutexLock lock{mutex_};
        if (is_reading_) {
            page.position = position_.value_or(0);
            page.end = page.position + 1;
            return;
        }
        is_reading_ = true;
    }
    struct Reading {
        StreamLister& lister;
        ~Reading() {
            const MutexLock lock{lister.mutex_};
            lister.is_reading_ = false;
        }
    } const reading{*this};
    read_on_alone(patience, page);
}

void StreamLister::read_on_alone(Duration patience, ListedPage& page) {
    constexpr std::size_t slots_at_once = 1000;
    const feed::Feed feed{*detail::parts_of(application_).store};
    std::optional<std::uint64_t> at;
    {
        const MutexLock lock{mutex_};
        at = position_;
    }
    if (!at) {
        const auto checkpoint = application_.rows<detail::Checkpoint>().get(StreamRow::follower);
        at = checkpoint ? static_cast<std::uint64_t>(checkpoint->position) : 0;
    }
    Clock& clock = application_.runtime().clock;
    const SteadyTime until = clock.until(patience);
    page.position = *at;
    page.end = feed.end();
    do {
        feed::Batch batch = feed.read(page.position, slots_at_once, {.first_slots = true});
        // A transaction that nobody ends would hold up the list; what it has not committed is in no list.
        if (batch.held) batch = feed.read(page.position, slots_at_once);
        page.position = batch.end;
        page.is_complete = batch.is_last;
        const MutexLock lock{mutex_};
        for (RecordedEvent& event : batch.events) {
            if (event.version == 1) unlisted_.try_emplace(std::move(event.stream), event.time);
        }
        position_ = batch.end;
        if (unlisted_.size() <= unlisted_max_) continue;
        throw ConfigError("the stored list of streams lacks more than " + std::to_string(unlisted_max_) +
                          " of them, too many for this program's memory; let an application list them once, by "
                          "Application::streams");
    } while (!page.is_complete && clock.steady_now() < until);
    page.end = std::max(page.end, page.position);
}

}  // namespace varve::operations
