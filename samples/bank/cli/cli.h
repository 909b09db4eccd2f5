#pragma once

#include "../account.h"
#include "../exit_codes.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bank {

/// What all commands share.
struct Cli {
    std::string program;  ///< as it was called
    std::string store = "sqlite:bank.db";
    bool json = false;
    std::string strategy = "automatic";
    std::int64_t lease_ms = 5000;
    std::string log_level = "warning";
    std::string log_format = "text";
    std::shared_ptr<varve::Log> log = {};  ///< where the bank's threads say what they met
    std::function<int()> chosen = {};      ///< the command that the line asks for

    /// The bank at `store`, with its read model. `lease_ms` and `strategy` as asked for.
    std::unique_ptr<varve::Application> open() const;
};

/// Each adds the commands of its file.
void add_account_commands(CLI::App& app, Cli& cli);
void add_reading_commands(CLI::App& app, Cli& cli);
void add_accounts_commands(CLI::App& app, Cli& cli);
void add_follow_command(CLI::App& app, Cli& cli);
void add_projections_command(CLI::App& app, Cli& cli);
void add_load_commands(CLI::App& app, Cli& cli);
void add_backup_command(CLI::App& app, Cli& cli);
void add_sql_command(CLI::App& app, Cli& cli);
void add_demo_command(CLI::App& app, Cli& cli);
void add_completion_command(CLI::App& app, Cli& cli);

/// What the program was asked for is done, but nobody can read it: standard output does not take it.
struct OutputFailed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// At once, so that who reads along sees it. Throws OutputFailed.
void print_line(const std::string& line);

}  // namespace bank
