#include "console.h"
#include "output.h"
#include "reports.h"

#include <varve/operations/timers.h>

#include <CLI/CLI.hpp>

namespace varve::console {

namespace {

int list_timers(Console& console, bool only_failed, std::size_t limit) {
    Application& application = console.application();
    const Time now = application.runtime().clock.get().now();
    Table table{{{"due"}, {"is"}, {"for"}, {"type"}, {"id"}, {"error"}}};
    std::size_t count = 0;
    for (const operations::StoredTimer& one : operations::timers(application, limit)) {
        if (only_failed && one.error.empty()) continue;
        ++count;
        if (console.json) {
            print_json(report_of(one));
            continue;
        }
        const std::string state = !one.error.empty() ? "failed"
                                  : one.due > now    ? "in " + shown(one.due - now)
                                                     : "late by " + shown(now - one.due);
        table.add({shown(one.due), state, shown(one.follower + " " + one.instance), shown(one.type), shown(one.id),
                   shown(one.error)});
    }
    table.end();
    if (count == 0 && !console.json) print_line(only_failed ? "no timer has failed" : "there are no timers");
    return done;
}

struct Dropped {
    std::string timer;
    bool dropped = false;
};

int give_up(Console& console, const std::string& id) {
    Application& application = console.to_write("give up the timer " + id + " for ever");
    const bool dropped = operations::drop_timer(application, id);
    if (console.json) {
        print_json(Dropped{id, dropped});
    } else {
        print_line(dropped ? "it is given up" : "there is no such timer");
    }
    return dropped ? done : not_done;
}

struct Retried {
    std::string follower;
    std::size_t fired = 0;
};

int fire_again(Console& console, const std::string& follower) {
    Application& application =
        console.to_write("fire, here and now, the timers of '" + follower + "' that have failed");
    console.check_has_follower(follower);
    const Retried report{follower, retry_timers(application, follower)};
    if (console.json) {
        print_json(report);
    } else {
        print_line(shown(static_cast<std::int64_t>(report.fired)) + " timers have not failed again");
    }
    return done;
}

}  // namespace

void add_timers_command(CLI::App& app, Console& console) {
    CLI::App* const timers = app.add_subcommand("timers", "List timers and scheduled commands");
    const auto only_failed = std::make_shared<bool>(false);
    const auto limit = std::make_shared<std::size_t>(10'000);
    timers->add_flag("--failed", *only_failed, "only those that have failed");
    timers->add_option("--limit", *limit, "at most so many")->check(CLI::PositiveNumber)->capture_default_str();
    timers->callback([&console, timers, only_failed, limit] {
        if (!timers->get_subcommands().empty()) return;
        console.chosen = [&console, only_failed, limit] { return list_timers(console, *only_failed, *limit); };
    });
    const auto text = std::make_shared<std::string>();
    CLI::App* const dropping = timers->add_subcommand("drop", "Give up a timer for ever");
    dropping->add_option("timer", *text, "its id")->required();
    dropping->callback([&console, text] { console.chosen = [&console, text] { return give_up(console, *text); }; });
    CLI::App* const retrying =
        timers->add_subcommand("retry", "Fire failed ones again; for programs that have their code");
    retrying->add_option("follower", *text, "whose: $process-reminder, $schedule-order")->required();
    retrying->callback([&console, text] { console.chosen = [&console, text] { return fire_again(console, *text); }; });
}

}  // namespace varve::console
