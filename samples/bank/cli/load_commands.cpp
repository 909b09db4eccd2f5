#include "../check.h"
#include "../money.h"
#include "../payments.h"
#include "../progress.h"
#include "../told.h"
#include "../turnover.h"
#include "cli.h"
#include "interrupt.h"
#include "load_options.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace bank {

namespace {

struct PayReport {
    bool ok = true;
    double seconds = 0;
    double transfers_per_second = 0;
    std::size_t committed = 0;
    std::size_t rejected = 0;
    std::size_t gave_up = 0;
    std::size_t in_doubt = 0;
    std::size_t retries = 0;
    std::int64_t p50_us = 0;
    std::int64_t p95_us = 0;
    std::int64_t p99_us = 0;
    std::int64_t p999_us = 0;
    Recoveries recoveries = {};
};

struct CheckReport {
    bool ok = true;
    std::vector<Audit::Rule> rules;
    std::size_t accounts = 0;
    std::size_t events = 0;
    std::size_t transfers = 0;
    Cents money_cents = 0;
    std::optional<std::size_t> repaired = {};
};

std::string milliseconds(std::int64_t us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(us) / 1000);
    return text;
}

void print(const PayReport& report) {
    const auto count = [](std::uint64_t n) { return count_text(static_cast<std::int64_t>(n)); };
    const Recoveries& r = report.recoveries;
    char head[120];
    std::snprintf(head, sizeof head, "%s transfers in %.2f s: %s/s", count(report.committed).c_str(), report.seconds,
                  count(static_cast<std::uint64_t>(report.transfers_per_second)).c_str());
    print_line(head);
    print_line("  latency     p50 " + milliseconds(report.p50_us) + ", p95 " + milliseconds(report.p95_us) + ", p99 " +
               milliseconds(report.p99_us) + ", p99.9 " + milliseconds(report.p999_us));
    print_line("  conflicts   " + count(r.conflicts) + ", retries " + count(report.retries) + ", gave up " +
               count(report.gave_up) + ", in doubt " + count(report.in_doubt));
    print_line("  rejected    " + count(report.rejected));
    print_line("  recoveries  " + count(r.fenced) + " fenced, " + count(r.undone) + " undone, " + count(r.finalised) +
               " finalised for others, " + count(r.swept) + " swept");
}

/// Who names the wrong store must not read that all is well.
int no_accounts(const Cli& cli) {
    const std::string message = "there are no accounts in " + cli.store;
    if (cli.json)
        print_line("{\"ok\":false,\"error\":\"no_accounts\",\"message\":" + varve::json::quote(message) + "}");
    std::fprintf(stderr, "bank: %s\n", message.c_str());
    return exit_refused;
}

int print(const Cli& cli, const Audit& audit, std::optional<std::size_t> repaired = std::nullopt) {
    if (audit.accounts == 0 && audit.holds()) return no_accounts(cli);
    if (cli.json) {
        print_line(varve::json::encode(CheckReport{.ok = audit.holds(),
                                                   .rules = audit.rules,
                                                   .accounts = audit.accounts,
                                                   .events = audit.events,
                                                   .transfers = audit.transfers.size(),
                                                   .money_cents = audit.money,
                                                   .repaired = repaired}));
        return audit.holds() ? exit_done : exit_refused;
    }
    for (const Audit::Rule& rule : audit.rules) {
        print_line((rule.holds() ? "✓ " : "✗ ") + rule.name + std::string(30 - rule.name.size(), ' ') + rule.found);
        for (const std::string& one : rule.broken) print_line("    " + one);
        if (rule.broken_count > rule.broken.size()) {
            print_line("    … and " + std::to_string(rule.broken_count - rule.broken.size()) + " more");
        }
    }
    if (repaired) print_line("repaired: " + count_text(static_cast<std::int64_t>(*repaired)) + " of the balances");
    return audit.holds() ? exit_done : exit_refused;
}

int check_books(const Cli& cli, bool repair) {
    const auto bank = cli.open();
    const Audit before = audit(*bank);
    if (!repair) return print(cli, before);
    const std::size_t repaired = repair_rows(*bank, before);
    return print(cli, repaired == 0 ? before : audit(*bank), repaired);
}

/// One write, so that lines of several threads do not mix and a killed process leaves only whole ones.
void tell(const Told& told) {
    const std::string line = varve::json::encode(told) + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        throw std::system_error(errno, std::generic_category(), "nobody listens to what --tell tells");
    }
}

struct PayOptions {
    Load load;
    bool tell = false;
    bool check = false;
};

/// Tells the process that started this one.
Observer telling(varve::Application& bank) {
    return {.begun = [](const Begun& begun) { tell({.begun = begun.id}); },
            .ended =
                [&bank](const Ended& ended) {
                    tell({.ended = ended.id,
                          .ending = ended.ending,
                          .took_us = ended.took.count(),
                          .attempts = ended.attempts,
                          .recoveries = recoveries(bank)});
                }};
}

int run_pay(const Cli& cli, const PayOptions& options) {
    const auto bank = cli.open();
    if (!options.tell) follow_turnover(*bank);  // who starts processes has one for that
    open_accounts(*bank, options.load);
    std::optional<Interrupt> interrupt;
    if (!options.tell) interrupt.emplace();  // who is told to tell ends at once, and its parent sees to the rest
    const auto began = std::chrono::steady_clock::now();
    const Figures figures = [&] {
        if (options.tell) return pay(*bank, options.load, telling(*bank));
        Progress progress{"paying", options.load.transfers};
        std::atomic<std::size_t> done = 0;
        Observer observer;
        observer.ended = [&](const Ended&) { progress.update(++done); };
        observer.is_enough = [&] { return interrupt->came(); };
        return pay(*bank, options.load, observer);
    }();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (options.tell) return exit_done;
    const PayReport report{.seconds = seconds,
                           .transfers_per_second = static_cast<double>(figures.committed) / seconds,
                           .committed = figures.committed,
                           .rejected = figures.rejected,
                           .gave_up = figures.gave_up,
                           .in_doubt = figures.in_doubt,
                           .retries = figures.retries,
                           .p50_us = figures.percentile(0.5).count(),
                           .p95_us = figures.percentile(0.95).count(),
                           .p99_us = figures.percentile(0.99).count(),
                           .p999_us = figures.percentile(0.999).count(),
                           .recoveries = recoveries(*bank)};
    if ((!options.check || interrupt->came()) && cli.json) print_line(varve::json::encode(report));
    if (!cli.json) print(report);
    if (interrupt->came()) {
        std::fprintf(stderr, "bank: interrupted after %s of %s transfers\n",
                     count_text(static_cast<std::int64_t>(figures.total())).c_str(),
                     count_text(static_cast<std::int64_t>(options.load.transfers)).c_str());
        return 128 + SIGINT;
    }
    return options.check ? print(cli, audit(*bank)) : exit_done;
}

}  // namespace

void add_load_commands(CLI::App& app, Cli& cli) {
    const auto options = std::make_shared<PayOptions>();
    CLI::App* pay = app.add_subcommand("pay", "Run a load of transfers between random accounts, and measure it");
    add_load_options(*pay, options->load);
    pay->add_flag("--check", options->check, "check the books afterwards");
    pay->add_flag("--tell", options->tell, "a JSON line for each transfer that begins or ends, for a parent process");
    pay->callback([&cli, options] { cli.chosen = [&cli, options] { return run_pay(cli, *options); }; });

    CLI::App* check = app.add_subcommand(
        "check", "Check the books: money, transfers, versions, read model, snapshots; while nobody writes");
    const auto repair = std::make_shared<bool>(false);
    check->add_flag("--repair", *repair, "make balances that are not as the events say anew, and check again");
    check->callback([&cli, repair] { cli.chosen = [&cli, repair] { return check_books(cli, *repair); }; });
}

}  // namespace bank
