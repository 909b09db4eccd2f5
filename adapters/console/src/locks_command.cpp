#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/operations/locks.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

int list_locks(Console& console) {
    Application& application = console.application();
    const Time now = application.runtime().clock.get().now();
    Table table{{{"lock"},
                 {"holder"},
                 {"ticket", Table::Align::right},
                 {"fence", Table::Align::right},
                 {"expires", Table::Align::right},
                 {"waiting", Table::Align::right}}};
    std::size_t count = 0;
    for (const operations::StoredLock& lock : operations::locks(application)) {
        ++count;
        const LockReport report = report_of(lock);
        if (console.json) {
            print_json(report);
            continue;
        }
        table.add({shown(report.lock), report.owner.empty() ? "nobody" : shown(report.owner), shown(report.ticket),
                   shown(report.fence), report.expires ? "in " + shown(*report.expires - now) : "",
                   shown(static_cast<std::int64_t>(report.queue.size()))});
    }
    table.end();
    if (count == 0 && !console.json) print_line("nobody holds a lock or waits for one");
    return done;
}

struct Evicted {
    std::string lock;
    locks::Ticket ticket = 0;
    bool evicted = false;
};

int evict(Console& console, const std::string& name, locks::Ticket ticket) {
    Application& application =
        console.to_write("take the lock '" + name + "', or the place in its queue, from ticket " +
                         std::to_string(ticket) + ", whose owner may live");
    const bool evicted = application.locks().evict(name, ticket);
    if (console.json) {
        print_json(Evicted{name, ticket, evicted});
    } else {
        print_line(evicted
                       ? "ticket " + std::to_string(ticket) + " has lost '" + shown(name) + "'"
                       : "ticket " + std::to_string(ticket) + " neither has '" + shown(name) + "' nor waits for it");
    }
    return evicted ? done : not_done;
}

}  // namespace

void add_locks_command(CLI::App& app, Console& console) {
    CLI::App* locks = app.add_subcommand("locks", "List locks that are held or waited for, and take them away");
    locks->callback([&console, locks] {
        if (locks->get_subcommands().empty()) console.chosen = [&console] { return list_locks(console); };
    });
    CLI::App* evicting = locks->add_subcommand("evict", "Take a lock, or a place in its queue, away from its owner");
    const auto name = std::make_shared<std::string>();
    const auto ticket = std::make_shared<locks::Ticket>(0);
    evicting->add_option("lock", *name, "its name")->required();
    evicting->add_option("ticket", *ticket, "the ticket of the owner, or of who waits")
        ->required()
        ->check(CLI::PositiveNumber);
    evicting->callback([&console, name, ticket] {
        console.chosen = [&console, name, ticket] { return evict(console, *name, *ticket); };
    });
}

}  // namespace varve::console
