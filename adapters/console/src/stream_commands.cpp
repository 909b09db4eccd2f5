#include "console.h"
#include "events.h"
#include "output.h"

#include <varve/events/event_store.h>
#include <varve/operations/streams.h>
#include <varve/store/item_store.h>

#include <map>
#include <tuple>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

struct StreamReport {
    std::string stream;
    Time since;
};

int list_streams(Console& console, const std::string& prefix, std::size_t limit) {
    Table table{{{"stream"}, {"since"}}};
    std::size_t count = 0;
    operations::each_stream(console.application(), prefix, [&](const ListedStream& stream) {
        if (count == limit) return false;
        ++count;
        if (console.json) {
            print_json(StreamReport{stream.name, stream.since});
        } else {
            table.add({shown(stream.name), shown(stream.since)});
        }
        return true;
    });
    table.end();
    if (count > 0 || console.json) return done;
    print_line(prefix.empty() ? "there are no streams" : "there are no streams that begin with '" + prefix + "'");
    return done;
}

struct Asked {
    std::string stream;
    std::string as_of;  // a version, or a time
    Version from = 1;
    std::size_t limit = 0;  // slots; 0: all
    bool newest_first = false;
};

/// All digits: a version; else a moment, a day meaning its end.
std::optional<Version> version_in(const std::string& text) {
    constexpr std::size_t digits_max = 18;
    const bool is_number =
        !text.empty() && text.size() <= digits_max && text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) return std::nullopt;
    return std::stoll(text);
}
Time moment_in(const std::string& text) {
    constexpr std::size_t date_bytes = 10;
    const Time moment = parse_time(text);
    return text.size() == date_bytes ? moment + std::chrono::hours{24} - Duration{1} : moment;
}

Stream load(Application& application, const Asked& asked) {
    if (asked.as_of.empty()) return application.events().load(asked.stream, asked.from);
    if (const std::optional<Version> version = version_in(asked.as_of))
        return application.events().load(asked.stream, asked.from, *version);
    Stream stream = application.events().load_as_of(asked.stream, moment_in(asked.as_of));
    std::erase_if(stream.events, [&](const RecordedEvent& event) { return event.version < asked.from; });
    return stream;
}

struct NoStream {
    std::string error = "no_stream";
    std::string message;
};

int no_stream(const Console& console, const std::string& stream) {
    const std::string message = "there is no stream '" + stream + "' in this store";
    if (console.json) print_json(NoStream{.message = message});
    std::fprintf(stderr, "%s: %s\n", console.program.name.c_str(), message.c_str());
    return not_done;
}

int print_history(Console& console, const Asked& asked) {
    Application& application = console.application();
    const bool is_paged = asked.as_of.empty() && asked.from == 1;
    if (!is_paged) {
        const Stream stream = load(application, asked);
        if (stream.head == 0) return no_stream(console, asked.stream);
        for (const RecordedEvent& event : stream.events) print_event(console, event);
        return done;
    }
    std::size_t left = asked.limit == 0 ? SIZE_MAX : asked.limit;
    PageOptions page{.limit = std::min<std::size_t>(left, 1000)};
    bool is_there = false;
    do {
        const StreamPage found = application.events().load(
            asked.stream, page, asked.newest_first ? Order::newest_first : Order::oldest_first);
        is_there = is_there || !found.events.empty();
        for (const RecordedEvent& event : found.events) print_event(console, event);
        page.next = found.next;
        left -= page.limit;
        page.limit = std::min(page.limit, left);
    } while (!page.next.empty() && left > 0);
    return is_there ? int{done} : no_stream(console, asked.stream);
}

struct SnapshotReport {
    Version version = 0;
    std::string schema;
    json::Raw state;
};
struct StreamSummary {
    std::string stream;
    Version version = 0;
    std::optional<Time> since = {};
    std::optional<Time> until = {};
    std::map<std::string, std::int64_t> events = {};  // by type
    std::vector<SnapshotReport> snapshots = {};       // that are not newer
};

std::vector<SnapshotReport> snapshots_of(Application& application, const std::string& stream, Version last) {
    const store::TableSchema schema{.name = "snapshots",
                                    .partition_attribute = "aggregateId",
                                    .sort_attribute = "schema",
                                    .sort = store::SortType::text};
    std::vector<SnapshotReport> found;
    if (!application.store().has_table(schema)) return found;
    for (const store::Record& record : application.store().query({.table = schema.name, .partition = stream}).records) {
        const std::int64_t* const version = store::integer(record.item, "version");
        const std::string* const state = store::text(record.item, "state");
        const auto* const sort = std::get_if<std::string>(&record.key.sort);
        if (version == nullptr || state == nullptr || sort == nullptr || *version > last) continue;
        found.push_back({*version, *sort, {*state}});
    }
    return found;
}

int print_stream(Console& console, const Asked& asked) {
    Application& application = console.application();
    const Stream stream = load(application, asked);
    if (stream.head == 0) return no_stream(console, asked.stream);
    StreamSummary summary{.stream = asked.stream};
    for (const RecordedEvent& event : stream.events) {
        if (!summary.since) summary.since = event.time;
        summary.until = event.time;
        summary.version = event.version;
        ++summary.events[event.event.type];
    }
    summary.snapshots = snapshots_of(application, asked.stream, summary.version);
    if (console.json) {
        print_json(summary);
        return done;
    }
    print_line("stream    " + shown(asked.stream));
    print_line("version   " + shown(summary.version) + " of " + shown(stream.head));
    if (summary.since) print_line("events    " + shown(*summary.since) + " to " + shown(*summary.until) + " UTC");
    Table table{{{"  type"}, {"events", Table::Align::right}}};
    for (const auto& [type, count] : summary.events) table.add({"  " + shown(type), shown(count)});
    table.end();
    for (const SnapshotReport& one : summary.snapshots)
        print_line("snapshot  of version " + shown(one.version) + ": " + shown(one.state.text));
    return done;
}

}  // namespace

void add_stream_commands(CLI::App& app, Console& console) {
    CLI::App* streams = app.add_subcommand("streams", "List streams by name");
    const auto prefix = std::make_shared<std::string>();
    const auto limit = std::make_shared<std::size_t>(SIZE_MAX);
    streams->add_option("prefix", *prefix, "only those that begin so: account-, account-a");
    streams->add_option("--limit", *limit, "at most so many")->check(CLI::PositiveNumber);
    streams->callback([&console, prefix, limit] {
        console.chosen = [&console, prefix, limit] { return list_streams(console, *prefix, *limit); };
    });

    const auto asked = std::make_shared<Asked>();
    const auto add_options = [asked](CLI::App& command) {
        command.add_option("stream", asked->stream, "its name: account-alice")->required();
        return command.add_option("--as-of", asked->as_of,
                                  "up to a version, a day (its end) or a time: 7, 2026-01-31, 2026-01-31T12:00Z");
    };
    CLI::App* history = app.add_subcommand("history", "Print a stream's events");
    CLI::Option* const as_of = add_options(*history);
    CLI::Option* const from =
        history->add_option("--from", asked->from, "from this version on")->check(CLI::PositiveNumber);
    history->add_option("--limit", asked->limit, "at most so many slots")
        ->check(CLI::PositiveNumber)
        ->excludes(as_of)
        ->excludes(from);
    history->add_flag("--newest-first", asked->newest_first, "the last ones first")->excludes(as_of)->excludes(from);
    history->callback(
        [&console, asked] { console.chosen = [&console, asked] { return print_history(console, *asked); }; });

    CLI::App* show = app.add_subcommand("show", "Sum up a stream: its version, events by type, snapshots");
    add_options(*show);
    show->callback([&console, asked] { console.chosen = [&console, asked] { return print_stream(console, *asked); }; });
}

}  // namespace varve::console
