#include "../progress.h"
#include "cli.h"

#include <varve/core/json.h>

#include <optional>

#include <CLI/CLI.hpp>

#if __has_include(<varve/sqlite/sqlite.h>)  // it is linked
#include <varve/sqlite/sqlite.h>
#endif

namespace bank {

namespace {

struct BackupReport {
    bool ok = true;
    std::string file;
    std::uint64_t bytes = 0;
};

int back_up(const Cli& cli, const std::string& to) {
#if __has_include(<varve/sqlite/sqlite.h>)
    const auto store = varve::open(cli.store);
    BackupReport report{.file = to};
    std::optional<Progress> progress;
    varve::sqlite::backup(*store, to, [&](const varve::sqlite::BackupProgress& now) {
        constexpr std::uint64_t kilobyte = 1024;
        if (!progress) progress.emplace("kilobytes", now.bytes_total / kilobyte);
        progress->update(now.bytes / kilobyte);
        report.bytes = now.bytes;
    });
    progress.reset();
    print_line(cli.json ? varve::json::encode(report)
                        : to + " has all of " + cli.store + ": " + std::to_string(report.bytes) + " bytes");
    return exit_done;
#else
    throw varve::ConfigError("no backup of " + cli.store + " to " + to + ": this program was built without SQLite");
#endif
}

}  // namespace

void add_backup_command(CLI::App& app, Cli& cli) {
    const auto to = std::make_shared<std::string>();
    CLI::App* backup = app.add_subcommand("backup", "Copy a SQLite store, as it is now, while others go on using it");
    backup->add_option("to", *to, "the new file")->required();
    backup->callback([&cli, to] { cli.chosen = [&cli, to] { return back_up(cli, *to); }; });
}

}  // namespace bank
