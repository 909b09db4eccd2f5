#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/commands/verified.h>
#include <varve/operations/followers.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

/// Projections, subscriptions and processes; or deliveries of effects.
enum class Followed { projections, effects };

bool is_of(Followed kind, const std::string& name) {
    return name.starts_with(delivery_prefix) == (kind == Followed::effects);
}
/// A type of effects stands for who delivers it.
std::string follower_name(Followed kind, const std::string& name) {
    return kind == Followed::effects && !name.starts_with(delivery_prefix) ? std::string{delivery_prefix} + name : name;
}

int list_followers(Console& console, Followed kind) {
    Table table{{{"name"},
                 {"state"},
                 {"behind", Table::Align::right},
                 {"lag", Table::Align::right},
                 {"taken", Table::Align::right},
                 {"aside", Table::Align::right},
                 {"error"}}};
    std::size_t count = 0;
    for (const FollowerStatus& one : operations::followers(console.application())) {
        if (!is_of(kind, one.name)) continue;
        ++count;
        const FollowerReport report = report_of(one);
        if (console.json) {
            print_json(report);
            continue;
        }
        std::string name = one.name;
        if (one.build > 1) name += " build " + std::to_string(one.build);
        if (one.partitions > 1) name += " " + std::to_string(one.partition) + "/" + std::to_string(one.partitions);
        table.add({shown(name), report.state, shown(one.end - one.position),
                   one.position >= one.end || !one.lag ? "" : shown(*one.lag), shown(one.events), shown(one.parked),
                   shown(one.error)});
    }
    table.end();
    if (count == 0 && !console.json)
        print_line(kind == Followed::effects ? "nobody delivers effects" : "nobody follows the events");
    return done;
}

int list_parked(Console& console, Followed kind, const std::string& of) {
    Application& application = console.application();
    std::vector<std::string> names;
    if (of.empty()) {
        for (const FollowerStatus& one : operations::followers(application)) {
            if (is_of(kind, one.name) && (names.empty() || names.back() != one.name)) names.push_back(one.name);
        }
    } else {
        names.push_back(follower_name(kind, of));
    }
    Table table{{{"follower"}, {"stream"}, {"version", Table::Align::right}, {"type"}, {"since"}, {"id"}, {"error"}}};
    std::size_t count = 0;
    for (const std::string& name : names) {
        for (const ParkedStream& one : operations::parked(application, name)) {
            ++count;
            if (console.json) {
                print_json(report_of(name, one));
            } else {
                table.add({shown(name), shown(one.stream), shown(one.version), shown(one.type), shown(one.since),
                           shown(one.id), shown(one.error)});
            }
        }
    }
    table.end();
    if (count == 0 && !console.json) print_line("no stream is set aside");
    return done;
}

struct TakenUp {
    std::string follower;
    std::size_t taken_up = 0;
    std::size_t left = 0;
};

int take_up(Console& console, Followed kind, const std::string& of) {
    const std::string name = follower_name(kind, of);
    Application& application = console.to_write("take up again, here and now, what '" + name + "' has set aside");
    console.check_has_follower(name);
    TakenUp report{.follower = name};
    report.taken_up = application.retry_parked(name);
    report.left = operations::parked(application, name).size();
    if (console.json) {
        print_json(report);
    } else {
        print_line(shown(static_cast<std::int64_t>(report.taken_up)) +
                   (report.taken_up == 1 ? " stream is taken up again, " : " streams are taken up again, ") +
                   shown(static_cast<std::int64_t>(report.left)) + " stay aside");
    }
    return report.left == 0 ? done : not_done;
}

struct RebuildReport {
    std::string projection;
    std::string what;
};

int told(Console& console, const std::string& name, const std::string& what) {
    if (console.json) {
        print_json(RebuildReport{name, what});
    } else {
        print_line("'" + shown(name) + "': " + what);
    }
    return done;
}

struct VerifyReport {
    std::string projection;
    bool holds = false;
    std::int64_t rows = 0;
    std::vector<std::string> differences;
};

std::string text_of(const RowDifference& one) {
    const std::string key = one.key.partition + (one.key.sort.empty() ? "" : "/" + one.key.sort);
    return one.table + "/" + key + ": stored is " + one.stored.value_or("nothing") + ", the events say " +
           one.expected.value_or("nothing");
}

int verify(Console& console, const std::string& name) {
    Application& application = console.application();
    console.check_has_follower(name);
    const Verified verified = application.verify(name);
    VerifyReport report{
        .projection = name, .holds = verified.differences.empty(), .rows = verified.rows, .differences = {}};
    for (const RowDifference& one : verified.differences) report.differences.push_back(text_of(one));
    if (console.json) {
        print_json(report);
    } else {
        for (const std::string& one : report.differences) print_line(shown(one));
        print_line("'" + shown(name) + "': " + shown(report.rows) + " rows compared, " +
                   (report.holds ? "all as the events say" : "not all as the events say"));
    }
    return report.holds ? done : not_done;
}

/// A subcommand with the name of a follower.
template <class Work>
void add_named(CLI::App& parent, Console& console, const std::string& command, const std::string& help,
               const std::string& argument, Work work) {
    CLI::App* const named = parent.add_subcommand(command, help);
    const auto name = std::make_shared<std::string>();
    named->add_option(argument, *name, "its name")->required();
    named->callback([&console, name, work] { console.chosen = [name, work] { return work(*name); }; });
}

void add_common(CLI::App& parent, Console& console, Followed kind, const char* argument) {
    parent.callback([&console, &parent, kind] {
        if (parent.get_subcommands().empty())
            console.chosen = [&console, kind] { return list_followers(console, kind); };
    });
    CLI::App* const parked = parent.add_subcommand("parked", "List the streams that are set aside, and why");
    const auto name = std::make_shared<std::string>();
    parked->add_option(argument, *name, "only of this one");
    parked->callback([&console, kind, name] {
        console.chosen = [&console, kind, name] { return list_parked(console, kind, *name); };
    });
    add_named(parent, console, "retry", "Take up again what is set aside; for programs that have its code", argument,
              [&console, kind](const std::string& of) { return take_up(console, kind, of); });
}

}  // namespace

void add_follower_commands(CLI::App& app, Console& console) {
    CLI::App* const projections =
        app.add_subcommand("projections", "List who follows events: projections, subscriptions, processes");
    add_common(*projections, console, Followed::projections, "projection");
    add_named(*projections, console, "rebuild", "Have its rows made anew, by the programs that have it", "projection",
              [&console](const std::string& name) {
                  Application& application =
                      console.to_write("have the rows of '" + name + "' made anew beside those that are read");
                  operations::rebuild(application, name);
                  return told(console, name, "its programs begin to make its rows anew within a few seconds");
              });
    add_named(*projections, console, "pause", "Let its rebuild wait", "projection",
              [&console](const std::string& name) {
                  operations::pause_rebuild(console.to_write("pause the rebuild of '" + name + "'"), name);
                  return told(console, name, "its rebuild waits");
              });
    add_named(*projections, console, "resume", "Let its rebuild go on", "projection",
              [&console](const std::string& name) {
                  operations::resume_rebuild(console.to_write("let the rebuild of '" + name + "' go on"), name);
                  return told(console, name, "its rebuild goes on");
              });
    add_named(*projections, console, "verify", "Compare its rows with its events; for programs that have its code",
              "projection", [&console](const std::string& name) { return verify(console, name); });

    CLI::App* const effects =
        app.add_subcommand("effects", "List the types of effects that are delivered, and how they get on");
    add_common(*effects, console, Followed::effects, "type");
}

}  // namespace varve::console
