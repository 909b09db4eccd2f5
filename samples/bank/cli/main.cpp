#include "../balances.h"
#include "cli.h"

#include <varve/core/suggest.h>
#include <varve/spdlog/log.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <CLI/CLI.hpp>

namespace bank {

std::unique_ptr<varve::Application> Cli::open() const {
    using varve::transactions::Strategy;
    auto bank = std::make_unique<varve::Application>(
        varve::open(store),
        varve::ApplicationOptions{
            .retry = {.time_max = std::chrono::seconds{60}},
            .transactions = {.strategy = strategy == "protocol" ? Strategy::protocol : Strategy::automatic,
                             .lease = std::chrono::milliseconds{lease_ms}},
            .locks = {.time_to_live = std::chrono::milliseconds{lease_ms}},
            .runtime = {.log = *log}});
    bank->project<Account>(ProjectBalance{});
    return bank;
}

void print_line(const std::string& line) {
    const std::string whole = line + "\n";
    if (std::fwrite(whole.data(), 1, whole.size(), stdout) != whole.size() || std::fflush(stdout) != 0) {
        throw OutputFailed(std::string{"standard output does not take the result, what was asked for is done: "} +
                           std::strerror(errno));
    }
}

namespace {

/// What a machine is told instead of a result.
struct FailureReport {
    bool ok = false;
    std::string error;
    std::string message;
};

int report(const Cli& cli, int code, const std::string& error, const std::string& message) {
    std::fprintf(stderr, "bank: %s\n", message.c_str());
    try {
        if (cli.json) print_line(varve::json::encode(FailureReport{.error = error, .message = message}));
    } catch (const OutputFailed&) {
        // The exit code and standard error tell it.
    }
    return code;
}

int exit_code(const varve::Error& error) {
    if (error.in_doubt()) return exit_in_doubt;
    const bool usage = error.kind() == varve::ErrorKind::invalid || error.kind() == varve::ErrorKind::config;
    return usage ? exit_usage : exit_failed;
}

std::shared_ptr<varve::Log> make_log(const Cli& cli) {
    using varve::LogLevel;
    using varve::spdlog::Format;
    const LogLevel from = cli.log_level == "debug"     ? LogLevel::debug
                          : cli.log_level == "info"    ? LogLevel::info
                          : cli.log_level == "warning" ? LogLevel::warning
                                                       : LogLevel::error;
    return varve::spdlog::make_log("bank", from, cli.log_format == "json" ? Format::json : Format::text);
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
    return "there is no command '" + word + "'" + varve::suggest(word, known);
}

int run(int argc, char** argv) {
    Cli cli{.program = argv[0]};
    CLI::App app{
        "A bank on varve: event-sourced accounts, and transfers between them that happen whole or not at all."};
    app.footer(
        "Exit codes: 0 done; 1 rejected, or a check that does not hold; 2 usage or configuration;\n"
        "            3 the store failed and nothing was done; 4 in doubt, nobody knows whether it was done;\n"
        "            5 done, but standard output did not take the result.\n"
        "Begin with: bank demo");
    app.set_version_flag("--version", std::string{"bank, of varve "} + BANK_VERSION, "the version of varve it is of");
    app.require_subcommand(1);
    app.fallthrough();
    app.failure_message(CLI::FailureMessage::simple);
    app.add_option("--store", cli.store, "where the accounts are, e.g. sqlite:bank.db?synchronous=normal, memory:")
        ->envname("BANK_STORE")
        ->capture_default_str();
    app.add_flag("--json", cli.json, "one JSON object on standard output, for machines");
    app.add_option("--strategy", cli.strategy, "how several accounts are written together: automatic or protocol")
        ->check(CLI::IsMember({"automatic", "protocol"}).description(""))
        ->capture_default_str();
    app.add_option("--lease-ms", cli.lease_ms, "when others may take this process's transactions and locks for dead")
        ->check(CLI::Range(1, 3'600'000))
        ->capture_default_str();
    app.add_option("--log-level", cli.log_level, "how much the bank's threads say on standard error")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}).description(""))
        ->capture_default_str();
    app.add_option("--log-format", cli.log_format, "text, or json: an object on each line")
        ->check(CLI::IsMember({"text", "json"}).description(""))
        ->capture_default_str();
    add_account_commands(app, cli);
    add_reading_commands(app, cli);
    add_accounts_commands(app, cli);
    add_follow_command(app, cli);
    add_projections_command(app, cli);
    add_load_commands(app, cli);
    add_backup_command(app, cli);
    add_sql_command(app, cli);
    add_demo_command(app, cli);
    add_completion_command(app, cli);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const std::vector<std::string> unknown = app.remaining();
        if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty()) {
            return report(cli, exit_usage, "config", unknown_command(app, unknown.front()));
        }
        if (app.exit(error) != 0) return exit_usage;
        return std::cout.flush() ? exit_done : exit_unread;
    }
    try {
        cli.log = make_log(cli);
        return cli.chosen();
    } catch (const varve::Error& error) {
        return report(cli, exit_code(error), varve::to_string(error.kind()), error.what());
    } catch (const OutputFailed& error) {
        std::fprintf(stderr, "bank: %s\n", error.what());
        return exit_unread;
    } catch (const std::exception& error) {
        return report(cli, exit_failed, "failed", error.what());
    }
}

}  // namespace
}  // namespace bank

int main(int argc, char** argv) {
    return bank::run(argc, argv);
}
