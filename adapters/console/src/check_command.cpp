#include "console.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"

#include <varve/operations/check.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

using operations::CheckReport;
using operations::Finding;

struct CheckSummary {
    bool holds = false;
    bool is_complete = false;
    std::size_t findings = 0;
    std::vector<std::string> not_checked;
    std::size_t slots = 0;
    std::size_t events = 0;
    std::size_t streams = 0;
    std::size_t rows = 0;
    std::size_t index_entries = 0;
    std::size_t snapshots = 0;
    std::size_t locks = 0;
    std::size_t undecided = 0;
    std::size_t to_be_settled = 0;
    std::size_t not_in_order = 0;
};

std::string counted_of(std::size_t count, const char* what) {
    return shown(static_cast<std::int64_t>(count)) + " " + what;
}

int check_store(Console& console, std::size_t findings_max) {
    const Interrupt interrupt;
    std::stop_source stop;
    Progress progress{console, "items"};
    operations::CheckOptions options{.stop = stop.get_token(), .findings_max = findings_max};
    options.on_progress = [&](const operations::CheckProgress& so_far) {
        progress.update(static_cast<std::int64_t>(so_far.items));
        if (interrupt.came()) stop.request_stop();
    };
    const CheckReport report = operations::check(console.application(), options);
    progress.end();
    for (const Finding& one : report.findings) {
        if (console.json) {
            print_json(one);
        } else {
            print_line("✗ " + shown(one.rule) + "  " + shown(one.item) + "\n    " + shown(one.what));
        }
    }
    if (console.json) {
        print_json(CheckSummary{.holds = report.holds(),
                                .is_complete = report.is_complete,
                                .findings = report.findings.size(),
                                .not_checked = report.not_checked,
                                .slots = report.slots,
                                .events = report.events,
                                .streams = report.streams,
                                .rows = report.rows,
                                .index_entries = report.index_entries,
                                .snapshots = report.snapshots,
                                .locks = report.locks,
                                .undecided = report.undecided,
                                .to_be_settled = report.to_be_settled,
                                .not_in_order = report.not_in_order});
        return report.holds() ? done : not_done;
    }
    print_line("looked at " + counted_of(report.slots, "slots with ") + counted_of(report.events, "events in ") +
               counted_of(report.streams, "streams, ") + counted_of(report.rows, "rows, ") +
               counted_of(report.index_entries, "entries of indexes, ") + counted_of(report.snapshots, "snapshots, ") +
               counted_of(report.locks, "locks"));
    if (report.undecided + report.to_be_settled > 0) {
        print_line(counted_of(report.undecided, "claims of transactions that may still commit, ") +
                   counted_of(report.to_be_settled, "of ones that have ended: varve transactions settle clears these"));
    }
    for (const std::string& one : report.not_checked) print_line("! not checked: " + shown(one));
    if (interrupt.came()) print_line("! interrupted: not all was looked at");
    if (report.holds()) {
        print_line("✓ nothing is broken");
    } else if (report.findings.size() >= findings_max) {
        print_line("✗ there may be more: the check ended at " + counted_of(findings_max, "findings (--findings)"));
    }
    return report.holds() ? done : not_done;
}

}  // namespace

void add_check_command(CLI::App& app, Console& console) {
    CLI::App* const check = app.add_subcommand("check", "Find what is broken in the store; reads all of it");
    const auto findings_max = std::make_shared<std::size_t>(1000);
    check->add_option("--findings", *findings_max, "end after so many")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    check->callback([&console, findings_max] {
        console.chosen = [&console, findings_max] { return check_store(console, *findings_max); };
    });
}

}  // namespace varve::console
