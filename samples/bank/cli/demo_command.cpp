#include "../child.h"
#include "../demo.h"
#include "../money.h"
#include "cli.h"
#include "load_options.h"

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <stdlib.h>

namespace bank {

namespace {

/// A folder of its own, removed with everything in it unless it is to be kept.
class ScratchFolder {
  public:
    ScratchFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "varve-bank-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw varve::ConfigError("cannot make a folder like " + name);
        path_ = name;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        if (!keep) std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    std::string file() const { return (path_ / "bank.db").string(); }
    bool keep = false;

  private:
    std::filesystem::path path_;
};

struct DemoOptions {
    DemoPlan plan;
    bool keep = false;
    bool scratch = false;  ///< whoever made the store removes it afterwards
};

struct DemoReport {
    bool ok = true;
    std::string store;
    std::string strategy;
    double seconds = 0;
    double transfers_per_second = 0;
    std::size_t kills = 0;
    std::size_t failures = 0;
    std::size_t committed = 0;
    std::size_t rejected = 0;
    std::size_t gave_up = 0;
    std::size_t in_doubt = 0;
    std::size_t retries = 0;
    std::int64_t p50_us = 0;
    std::int64_t p99_us = 0;
    Recoveries recoveries = {};
    Cents money_before_cents = 0;
    Cents money_after_cents = 0;
    Fates acknowledged = {};
    Fates refused = {};
    Fates cut_off = {};
    std::size_t kills_while_summing = 0;
    Turnover turnover = {};   ///< as the events say
    Turnover summed_up = {};  ///< as the process says that sums up
    std::vector<Audit::Rule> rules;
};

std::string number(std::uint64_t count) {
    return count_text(static_cast<std::int64_t>(count));
}

std::string milliseconds(std::chrono::microseconds time) {
    return number(static_cast<std::uint64_t>((time.count() + 500) / 1000)) + " ms";
}

/// `own_file`: the store is a file that is removed afterwards unless it is to be kept.
void print_screen(const Cli& cli, const DemoOptions& options, const DemoResult& result, bool own_file) {
    const DemoPlan& plan = options.plan;
    const auto mark = [](bool good) { return std::string{good ? "✓" : "✗"}; };
    const auto line = [](const std::string& name, const std::string& text) {
        print_line("  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + text);
    };
    char rate[80];
    std::snprintf(
        rate, sizeof rate, "%.1f s, %s transfers/s, ", result.seconds,
        number(static_cast<std::uint64_t>(static_cast<double>(result.figures.committed) / result.seconds)).c_str());
    const Recoveries& r = result.recoveries;

    print_line("varve: money on the move while its processes are killed\n");
    const Load& load = plan.load;
    line("load", number(load.transfers) + (load.distribution == Distribution::zipf ? " Zipf" : "") + " transfers, " +
                     number(load.accounts) + " accounts, " + number(plan.processes) + " processes x " +
                     number(load.workers) + " threads");
    line("store", (own_file ? "one SQLite file" : plan.store) +
                      (result.natively ? ", by its own transactions" : ", one item at a time") + " (--strategy " +
                      plan.strategy + (result.natively ? ")" : "):"));
    if (!result.natively) line("", "the same protocol as on stores that have no transactions");
    line("speed", rate + std::string{"p50 "} + milliseconds(result.figures.percentile(0.5)) + ", p99 " +
                      milliseconds(result.figures.percentile(0.99)));
    line("killed", number(result.kills) +
                       " processes by SIGKILL: " + number(result.kills - result.kills_while_summing) +
                       " in mid-transfer, " + number(result.kills_while_summing) + " in mid-sum; replaced");
    if (result.failures > 0) {
        line("", number(result.failures) + " ended because the store did not answer, and were replaced, too");
    }
    line("settled", number(r.undone) + " claims undone, " + number(r.finalised) + " completed by whoever met them, " +
                        number(r.swept) + " by sweepers");
    print_line("");
    line("money before", money_text(result.before));
    line("money after", money_text(result.after) + "  " +
                            (result.before == result.after ? "✓ not a cent lost, not a cent made" : "✗ it changed"));
    print_line("  " + mark(result.acknowledged.whole == result.acknowledged.total()) + " of " +
               number(result.acknowledged.total()) + " acknowledged transfers, " + number(result.acknowledged.whole) +
               " are there, both halves");
    print_line("  " + mark(result.cut_off.half == 0) + " of " + number(result.cut_off.total()) +
               " cut off by a kill, " + number(result.cut_off.whole) + " happened whole, " +
               number(result.cut_off.absent) + " not at all, " + number(result.cut_off.half) + " by half");
    if (result.refused.total() > 0) {
        print_line("  " + mark(result.refused.absent == result.refused.total()) + " of " +
                   number(result.refused.total()) + " refused for lack of money, " +
                   number(result.refused.total() - result.refused.absent) + " left a trace");
    }
    const Turnover& events = result.audit.turnover;
    const Turnover& sums = result.audit.summed_up;
    const std::string in_and_out = money_text(sums.in) + " in, " + money_text(sums.out) + " out";
    const std::string killed = result.kills_while_summing == 1 ? "once" : number(result.kills_while_summing) + " times";
    print_line("  " + mark(sums == events) + " of " + count_text(events.movements) +
               " payments, one process adds up each: killed " + killed +
               (sums == events ? ", it missed none," : ", it has " + count_text(sums.movements)));
    print_line("    " + (sums == events ? "counted none twice: " + in_and_out + ", as the events say"
                                        : in_and_out + "; the events say " + money_text(events.in) + " in, " +
                                              money_text(events.out) + " out"));
    std::string rules;
    for (const Audit::Rule& rule : result.audit.rules) {
        if (!rule.holds()) rules += (rules.empty() ? "" : ", ") + rule.name;
    }
    print_line("  " + mark(rules.empty()) + " bank check: " +
               (rules.empty() ? "all " + number(result.audit.rules.size()) + " rules hold over " +
                                    number(result.audit.events) + " events"
                              : "broken: " + rules));
    print_line("");
    if (!result.holds()) {
        print_line("This must never happen. Please report it, with what the store holds.");
    } else if (!result.natively) {
        print_line("So a transfer happens whole or not at all, whoever dies, on any store that can");
        print_line("write ONE item under a condition. Whoever comes by later completes or undoes it.");
    } else {
        print_line("So a transfer happens whole or not at all, whoever dies. Here the store's own");
        print_line("transactions saw to it; --strategy protocol does it on stores that have none.");
    }
    print_line("Try next, with " + cli.program + ":");
    if (options.keep || (!own_file && !options.scratch)) {
        print_line("  --store '" + plan.store + "' check | balances | statement " + account_id(0));
    } else {
        print_line(std::string{"  demo --strategy "} + (result.natively ? "protocol" : "automatic") +
                   " | demo --keep | --help");
    }
}

/// What the line says of the options that all commands share; the demo has defaults of its own.
struct Given {
    bool store;
    bool strategy;
};

int run(const Cli& cli, DemoOptions options, Given given) {
    DemoPlan& plan = options.plan;
    if (given.strategy) plan.strategy = cli.strategy;
    std::optional<ScratchFolder> folder;
    if (given.store) {
        plan.store = cli.store;
        if (plan.store.starts_with("memory:")) {
            throw varve::ConfigError("processes cannot share '" + plan.store +
                                     "'; name a store that several of them can open");
        }
    } else {
        folder.emplace();
        folder->keep = options.keep;
        plan.store = "sqlite:" + folder->file();
    }
    plan.program = own_path();
    plan.arguments = {"--log-level", cli.log_level, "--log-format", cli.log_format};
    plan.runtime.log = *cli.log;
    if (!cli.json) {
        print_line(folder ? "The file: " + folder->file() + (options.keep ? "" : " (removed afterwards; --keep)")
                          : "The store: " + plan.store);
    }
    try {
        const DemoResult result = run_demo(plan);
        if (!result.holds() && folder) options.keep = folder->keep = true;
        if (cli.json) {
            const Figures& f = result.figures;
            print_line(varve::json::encode(
                DemoReport{.ok = result.holds(),
                           .store = plan.store,
                           .strategy = plan.strategy,
                           .seconds = result.seconds,
                           .transfers_per_second = static_cast<double>(f.committed) / result.seconds,
                           .kills = result.kills,
                           .failures = result.failures,
                           .committed = f.committed,
                           .rejected = f.rejected,
                           .gave_up = f.gave_up,
                           .in_doubt = f.in_doubt,
                           .retries = f.retries,
                           .p50_us = f.percentile(0.5).count(),
                           .p99_us = f.percentile(0.99).count(),
                           .recoveries = result.recoveries,
                           .money_before_cents = result.before,
                           .money_after_cents = result.after,
                           .acknowledged = result.acknowledged,
                           .refused = result.refused,
                           .cut_off = result.cut_off,
                           .kills_while_summing = result.kills_while_summing,
                           .turnover = result.audit.turnover,
                           .summed_up = result.audit.summed_up,
                           .rules = result.audit.rules}));
        } else {
            print_screen(cli, options, result, folder.has_value());
        }
        return result.holds() ? exit_done : exit_refused;
    } catch (const Interrupted& interrupted) {
        std::fprintf(
            stderr, "bank: interrupted after %s of %s transfers and %s kills; all processes of the demo are stopped\n",
            number(interrupted.ended).c_str(), number(plan.load.transfers).c_str(), number(interrupted.kills).c_str());
        return 128 + interrupted.signal;
    }
}

}  // namespace

void add_demo_command(CLI::App& app, Cli& cli) {
    const auto options = std::make_shared<DemoOptions>();
    DemoPlan& plan = options->plan;
    CLI::App* demo = app.add_subcommand("demo",
                                        "Kill processes in mid-transfer, and see that no money is lost; about a "
                                        "minute, in a fresh SQLite file, or in the empty store that --store names");
    add_load_options(*demo, plan.load);
    demo->add_option("--processes", plan.processes)->check(CLI::Range(1, 64))->capture_default_str();
    demo->add_option("--kills", plan.kills)->check(CLI::NonNegativeNumber)->capture_default_str();
    demo->add_flag("--keep", options->keep, "keep the file, to look at it afterwards");
    demo->add_flag("--scratch", options->scratch,
                   "the store that --store names is removed afterwards: do not advise to look at it");
    demo->callback([&app, &cli, options] {
        const Given given{.store = app.get_option("--store")->count() > 0,
                          .strategy = app.get_option("--strategy")->count() > 0};
        cli.chosen = [&cli, options, given] { return run(cli, *options, given); };
    });
}

}  // namespace bank
