#include "console.h"

#include "output.h"

#include <varve/commands/follower_status.h>
#include <varve/core/suggest.h>
#include <varve/operations/read_only.h>
#include <varve/spdlog/log.h>
#include <varve/store/open.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace varve::console {

void Console::check_has_url() const {
    if (url.empty())
        throw ConfigError("which store? Give --store URL, as in --store sqlite:bank.db, or set VARVE_STORE");
}

void Console::confirm(const std::string& what_happens) const {
    if (!allow_writes)
        throw ConfigError("this changes the store, so it needs --allow-writes; it would: " + what_happens);
    if (yes) return;
    if (isatty(STDIN_FILENO) == 0)
        throw ConfigError("nobody is there to be asked; give --yes to confirm: " + what_happens);
    std::fprintf(stderr, "This will: %s\nGo on? [y/N] ", what_happens.c_str());
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "Y" && answer != "yes") throw NotConfirmed();
}

std::shared_ptr<store::ItemStore> Console::store_to_read() const {
    check_has_url();
    return operations::read_only(open_existing(url));
}

std::shared_ptr<store::ItemStore> Console::store_to_fill(const std::string& what_happens) const {
    check_has_url();
    confirm(what_happens);
    return open(url);
}

Application& Console::application() {
    if (application_) return *application_;
    std::shared_ptr<store::ItemStore> store = store_to_read();
    if (allow_writes) store = open(url);  // tables of the framework's own that nobody has needed yet may be made
    ApplicationOptions options = program.options;
    options.sweep = false;
    options.runtime.log = *log;
    application_ = std::make_unique<Application>(std::move(store), options);
    if (program.meet) program.meet(*application_);
    return *application_;
}

Application& Console::to_write(const std::string& what_happens) {
    confirm(what_happens);
    return application();
}

void Console::check_has_follower(const std::string& name) {
    const std::vector<FollowerStatus> own = application().followers();
    if (std::ranges::find(own, name, &FollowerStatus::name) != own.end()) return;
    throw ConfigError("this runs the code of '" + name + "', which " + program.name +
                      " does not have; a program of your own that calls varve::console::run with its types does");
}

namespace {

struct FailureReport {
    std::string error;
    std::string message;
};

int report(const Console& console, int code, const std::string& error, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", console.program.name.c_str(), message.c_str());
    try {
        if (console.json) print_json(FailureReport{error, message});
    } catch (const std::exception&) {
        // The exit code and standard error tell it.
    }
    return code;
}

int exit_code(const Error& error) {
    if (error.in_doubt()) return in_doubt;
    const bool is_usage = error.kind() == ErrorKind::invalid || error.kind() == ErrorKind::config;
    return is_usage ? unusable : failed;
}

std::shared_ptr<Log> make_log(const Console& console) {
    const LogLevel from = console.log_level == "debug"     ? LogLevel::debug
                          : console.log_level == "info"    ? LogLevel::info
                          : console.log_level == "warning" ? LogLevel::warning
                                                           : LogLevel::error;
    return spdlog::make_log(console.program.name, from,
                            console.log_format == "json" ? spdlog::Format::json : spdlog::Format::text);
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
    return "there is no command '" + word + "'" + suggest(word, known);
}

int run_command(CLI::App& app, Console& console, int argc, char** argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const std::vector<std::string> unknown = app.remaining();
        if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty())
            return report(console, unusable, "config", unknown_command(app, unknown.front()));
        if (app.exit(error) != 0) return unusable;
        return std::cout.flush() ? done : unread;
    }
    console.log = make_log(console);
    return console.chosen();
}

}  // namespace

int run(int argc, char** argv, const Program& program) {
    Console console{program};
    CLI::App app{
        "What an operator sees of a store of varve's, and does to it. It only reads, unless --allow-writes is given."};
    app.name(program.name);
    app.footer(
        "Exit codes: 0 done, or well; 1 not done, or something is wrong; 2 usage or configuration;\n"
        "            3 failed, what was done before stays; 4 in doubt, nobody knows whether it was done;\n"
        "            5 done, but standard output did not take the result.\n"
        "Begin with: " +
        program.name + " doctor --store sqlite:bank.db");
    app.set_version_flag("--version", program.name + ", of varve " VARVE_VERSION, "the version of varve it is of");
    app.require_subcommand(1);
    app.fallthrough();
    app.failure_message(CLI::FailureMessage::simple);
    app.add_option("--store", console.url,
                   "the store's URL, as for varve::open: sqlite:bank.db, postgres://HOST/DATABASE")
        ->envname("VARVE_STORE");
    app.add_flag("--json", console.json, "for machines: a JSON object on each line of standard output");
    app.add_flag("--allow-writes", console.allow_writes,
                 "let commands change the store; each says what it will do, and asks");
    app.add_flag("--yes", console.yes, "do not ask");
    app.add_option("--log-level", console.log_level, "how much is said on standard error")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}).description(""))
        ->capture_default_str();
    app.add_option("--log-format", console.log_format, "text, or json: an object on each line")
        ->check(CLI::IsMember({"text", "json"}).description(""))
        ->capture_default_str();
    add_doctor_command(app, console);
    add_check_command(app, console);
    add_stats_command(app, console);
    add_stream_commands(app, console);
    add_tail_command(app, console);
    add_transactions_command(app, console);
    add_locks_command(app, console);
    add_follower_commands(app, console);
    add_timers_command(app, console);
    add_archive_commands(app, console);
    add_serve_command(app, console);
    add_help_commands(app, console);
    try {
        return run_command(app, console, argc, argv);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const Error& error) {
        return report(console, exit_code(error), to_string(error.kind()), error.what());
    } catch (const NotConfirmed& error) {
        return report(console, not_done, "not_confirmed", error.what());
    } catch (const OutputFailed& error) {
        std::fprintf(stderr, "%s: %s\n", program.name.c_str(), error.what());
        return unread;
    } catch (const std::exception& error) {
        return report(console, failed, "failed", error.what());
    }
}

}  // namespace varve::console
