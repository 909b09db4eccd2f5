#include "../balances.h"
#include "../money.h"
#include "../progress.h"
#include "../turnover.h"
#include "cli.h"
#include "interrupt.h"
#include "text.h"

#include <varve/commands/follower_status.h>
#include <varve/commands/parked_stream.h>
#include <varve/commands/verified.h>
#include <varve/core/suggest.h>

#include <cstdio>

#include <CLI/CLI.hpp>

namespace bank {

namespace {

using varve::FollowerStatus;

constexpr const char* turnover_name = "turnover";
constexpr const char* balances_name = "balances";

struct ProjectionsOptions {
    std::string verify;
    std::string retry;
    std::string rebuild;
};

struct ParkedAccount {
    std::string account;
    varve::Version version = 0;
    std::string type;
    std::string error;
    varve::Time since = {};
};
struct ProjectionReport {
    std::string name;
    std::string kept;  ///< inline or followed
    std::string state;
    std::uint64_t position = 0;
    std::uint64_t end = 0;
    std::int64_t events = 0;
    std::optional<double> lag_seconds = {};
    std::optional<double> events_per_second = {};
    std::string error = {};
    std::vector<ParkedAccount> parked = {};
};
struct ProjectionsReport {
    bool ok = true;
    std::vector<ProjectionReport> projections;
};

/// "1 row", "1 000 rows"
std::string counted(std::int64_t count, const std::string& what) {
    return count_text(count) + " " + what + (count == 1 ? "" : "s");
}

/// Takes what there is, with a bar: at its end the projection is live, has stopped, or is another process's.
FollowerStatus caught_up(varve::Application& bank, const Interrupt& interrupt) {
    FollowerStatus status = bank.followers().front();
    const std::uint64_t began = status.position;
    Progress progress{turnover_name, static_cast<std::size_t>(status.end - began)};
    while (!bank.wait_for<SumUpTurnover>({}, std::chrono::milliseconds{100})) {
        status = bank.followers().front();
        progress.update(static_cast<std::size_t>(status.position - began));
        const bool is_through = status.parked > 0 && status.lag == varve::Duration::zero();
        if (status.state == FollowerStatus::State::stopped || is_through || interrupt.came()) return status;
    }
    return bank.followers().front();
}

/// Whichever process it is in.
std::string state_of(const FollowerStatus& status) {
    if (status.state == FollowerStatus::State::stopped || !status.error.empty()) return "stopped";
    return status.lag == varve::Duration::zero() ? "up to date" : "catching up";
}

ProjectionReport report_of(varve::Application& bank, const FollowerStatus& status) {
    ProjectionReport report{.name = status.name,
                            .kept = "followed",
                            .state = state_of(status),
                            .position = status.position,
                            .end = status.end,
                            .events = status.events,
                            .lag_seconds = {},
                            .events_per_second = status.events_per_second,
                            .error = status.error,
                            .parked = {}};
    if (status.lag) report.lag_seconds = std::chrono::duration<double>(*status.lag).count();
    for (const varve::ParkedStream& one : bank.parked(status.name)) {
        report.parked.push_back({std::string{varve::id_of(one.stream)}, one.version, one.type, one.error, one.since});
    }
    return report;
}

void print(const ProjectionReport& one) {
    std::string line =
        padded(one.name, 12) + padded(one.kept, 10) + padded(one.state, 13) + counted(one.events, "event");
    if (one.lag_seconds && *one.lag_seconds > 0) {
        line += ", the last one " + count_text(static_cast<std::int64_t>(*one.lag_seconds)) + " s old";
    }
    print_line(line);
    for (const ParkedAccount& aside : one.parked) {
        print_line("  set aside: " + aside.account + " from version " + std::to_string(aside.version) + ", " +
                   aside.type + ", since " + short_time(aside.since) + ": " + aside.error);
    }
    if (!one.error.empty()) print_line("  " + one.error);
}

int list(const Cli& cli, varve::Application& bank, const Interrupt& interrupt) {
    const ProjectionReport turnover = report_of(bank, caught_up(bank, interrupt));
    ProjectionsReport report{.ok = turnover.error.empty() && turnover.parked.empty(), .projections = {}};
    report.projections.push_back(turnover);
    if (cli.json) {
        report.projections.push_back({.name = balances_name, .kept = "inline", .state = "up to date"});
        print_line(varve::json::encode(report));
    } else {
        print(turnover);
        print_line(padded(balances_name, 12) + padded("inline", 10) + padded("up to date", 13) + "with each command");
    }
    return report.ok ? exit_done : exit_refused;
}

struct DifferenceReport {
    std::string table;
    std::string key;
    std::optional<std::string> stored;
    std::optional<std::string> expected;
};
struct VerifyReport {
    bool ok = true;
    std::int64_t events = 0;
    std::int64_t rows = 0;
    std::vector<DifferenceReport> differences;
};

int verify(const Cli& cli, varve::Application& bank, const std::string& name) {
    const varve::Verified verified =
        name == balances_name ? bank.verify<ProjectBalance>() : bank.verify<SumUpTurnover>();
    VerifyReport report{
        .ok = verified.differences.empty(), .events = verified.events, .rows = verified.rows, .differences = {}};
    for (const varve::RowDifference& one : verified.differences)
        report.differences.push_back({one.table, one.key.partition, one.stored, one.expected});
    if (cli.json) {
        print_line(varve::json::encode(report));
    } else {
        for (const DifferenceReport& one : report.differences) {
            print_line(one.table + " " + one.key + ": the row is " + one.stored.value_or("missing") +
                       ", the events say " + one.expected.value_or("that there is none"));
        }
        print_line(name + ": " + counted(report.rows, "row") + " of " + counted(report.events, "event") + ", " +
                   (report.ok ? "all as the events say"
                              : count_text(static_cast<std::int64_t>(report.differences.size())) + " not so"));
    }
    return report.ok ? exit_done : exit_refused;
}

struct RetryReport {
    bool ok = true;
    std::size_t live = 0;
    std::size_t aside = 0;
};

int retry(const Cli& cli, varve::Application& bank, const std::string& name) {
    RetryReport report{.live = bank.retry_parked(name)};
    report.aside = bank.parked(name).size();
    report.ok = report.aside == 0;
    if (cli.json) {
        print_line(varve::json::encode(report));
    } else {
        print_line(name + ": " + counted(static_cast<std::int64_t>(report.live), "account") + " taken up again, " +
                   std::to_string(report.aside) + " still aside");
    }
    return report.ok ? exit_done : exit_refused;
}

struct RebuildReport {
    bool ok = true;
    std::int64_t build = 0;
    std::int64_t events = 0;
};

/// "40 000 events in a second, 12 s left"
std::string note_of(const FollowerStatus& status) {
    if (status.paused) return "paused";
    std::string note;
    if (status.events_per_second)
        note = count_text(static_cast<std::int64_t>(*status.events_per_second)) + " events in a second";
    if (status.time_left) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(*status.time_left);
        note += ", " + count_text(left.count()) + " s left";
    }
    return note;
}

/// Returns when the new rows are read; stopped before, any process that follows goes on with them.
int rebuild(const Cli& cli, varve::Application& bank, const std::string& name, const Interrupt& interrupt) {
    const std::int64_t before = bank.followers().front().build;
    bank.rebuild(name);
    const auto of = [&](std::int64_t build) {
        for (const FollowerStatus& one : bank.followers()) {
            if (one.build > build) return one;
        }
        return FollowerStatus{};
    };
    FollowerStatus status = bank.followers().front();
    {
        Progress progress{"rebuilding " + name, static_cast<std::size_t>(status.end)};
        while (bank.followers().front().build == before && !interrupt.came()) {
            status = of(before);
            if (status.state == FollowerStatus::State::stopped) break;
            progress.update(static_cast<std::size_t>(status.position), note_of(status));
            bank.runtime().clock.get().sleep_for(std::chrono::milliseconds{100});
        }
    }
    status = bank.followers().front();
    const RebuildReport report{.ok = status.build > before, .build = status.build, .events = status.events};
    if (cli.json) {
        print_line(varve::json::encode(report));
    } else if (report.ok) {
        print_line(name + ": all rows made anew from " + counted(report.events, "event") + ", and read from now on");
    } else {
        print_line(name + ": not done; it goes on with the next process that follows. " + of(before).error);
    }
    return report.ok ? exit_done : exit_refused;
}

int run(const Cli& cli, const ProjectionsOptions& options) {
    const Interrupt interrupt;
    const auto bank = cli.open();
    follow_turnover(*bank);
    if (!options.verify.empty()) return verify(cli, *bank, options.verify);
    if (!options.retry.empty()) return retry(cli, *bank, options.retry);
    if (!options.rebuild.empty()) return rebuild(cli, *bank, options.rebuild, interrupt);
    return list(cli, *bank, interrupt);
}

}  // namespace

void add_projections_command(CLI::App& app, Cli& cli) {
    const auto options = std::make_shared<ProjectionsOptions>();
    CLI::App* command =
        app.add_subcommand("projections", "How the read models are doing, after they have taken what there is");
    CLI::Option* verify =
        command->add_option("--verify", options->verify, "compare all rows with the events: turnover or balances")
            ->check(CLI::IsMember({turnover_name, balances_name}).description(""));
    CLI::Option* retry =
        command->add_option("--retry", options->retry, "take up the accounts that were set aside: turnover")
            ->check(CLI::IsMember({turnover_name}).description(""))
            ->excludes(verify);
    command->add_option("--rebuild", options->rebuild, "make all rows anew, while the old ones are read: turnover")
        ->check(CLI::IsMember({turnover_name}).description(""))
        ->excludes(verify)
        ->excludes(retry);
    command->callback([&cli, options] { cli.chosen = [&cli, options] { return run(cli, *options); }; });
}

}  // namespace bank
