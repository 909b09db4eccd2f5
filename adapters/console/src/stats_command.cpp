#include "console.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"

#include <varve/operations/stats.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using operations::AggregateStats;
using operations::StoreStats;
using operations::TableStats;

struct StatsReport {
    bool whole = true;
    std::map<std::string, AggregateStats> aggregates;
    std::map<std::string, TableStats> tables;
};

int print_stats(Console& console) {
    const Interrupt interrupt;
    std::stop_source stop;
    Progress progress{console, "items"};
    StoreStats stats = operations::count(
        console.application(),
        [&](std::int64_t items) {
            progress.update(items);
            if (interrupt.came()) stop.request_stop();
        },
        stop.get_token());
    progress.end();
    if (console.json) {
        print_json(StatsReport{!stop.stop_requested(), std::move(stats.aggregates), std::move(stats.tables)});
        return stop.stop_requested() ? not_done : done;
    }
    constexpr auto right = Table::Align::right;
    Table aggregates{
        {{"aggregate"}, {"streams", right}, {"slots", right}, {"events", right}, {"bytes", right}, {"longest"}}};
    for (const auto& [name, one] : stats.aggregates) {
        aggregates.add({shown(name), shown(one.streams), shown(one.slots), shown(one.events), shown(one.bytes),
                        shown(one.longest) + " (" + shown(one.longest_slots) + ")"});
    }
    aggregates.end();
    print_line("");
    Table tables{{{"table"}, {"items", right}, {"bytes", right}}};
    for (const auto& [name, one] : stats.tables) tables.add({shown(name), shown(one.items), shown(one.bytes)});
    tables.end();
    if (!stop.stop_requested()) return done;
    print_line("interrupted: there is more");
    return not_done;
}

}  // namespace

void add_stats_command(CLI::App& app, Console& console) {
    CLI::App* const stats = app.add_subcommand("stats", "Count what the store holds; reads all of it");
    stats->callback([&console] { console.chosen = [&console] { return print_stats(console); }; });
}

}  // namespace varve::console
