#include "commands/application_parts.h"
#include "commands/checkpoint.h"
#include "commands/stream_row.h"
#include "feed/feed.h"

#include <varve/operations/streams.h>

#include <algorithm>
#include <iterator>

namespace varve::operations {

namespace {

using detail::StreamRow;

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

void each_stream(Application& application, std::string_view prefix,
                 const std::function<bool(const ListedStream& stream)>& found) {
    StreamLister lister{application};
    ListedAsked asked{.prefix = std::string{prefix}, .limit = 1000, .patience = Duration::max()};
    for (bool has_more = true; has_more;) {
        const ListedPage page = lister.page(asked);
        for (const ListedStream& stream : page.streams) {
            if (!found(stream)) return;
        }
        has_more = page.has_more;
        if (has_more) asked.after = page.streams.back().name;
    }
}

}  // namespace varve::operations
