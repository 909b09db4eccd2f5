#pragma once

#include <varve/console/console.h>
#include <varve/core/error.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace varve::console {

enum ExitCode : int { done = 0, not_done = 1, unusable = 2, failed = 3, in_doubt = 4, unread = 5 };

/// What all commands share: the options of the command line, and the store that they work on.
class Console {
  public:
    explicit Console(const Program& program) : program(program) {}

    const Program& program;
    std::string url;
    bool json = false;
    bool allow_writes = false;
    bool yes = false;
    std::string log_level = "warning";
    std::string log_format = "text";
    std::shared_ptr<Log> log = {};
    std::function<int()> chosen = {};  ///< the command that the line asks for

    /// The store at `url`, opened once: for reading only, unless writes are allowed. Errors: ConfigError for a store
    /// that is not there or holds nothing of varve's.
    Application& application();
    /// The store alone, where no application is needed, or may not be: to be read, or to be written to. As
    /// application() and to_write(); a store to be filled need not be there.
    std::shared_ptr<store::ItemStore> store_to_read() const;
    std::shared_ptr<store::ItemStore> store_to_fill(const std::string& what_happens) const;
    /// For who is about to write elsewhere; as to_write().
    void confirm(const std::string& what_happens) const;
    /// For who is about to write: says what will happen and asks, unless --yes was given. Errors: ConfigError without
    /// --allow-writes, or where nobody can be asked; NotConfirmed.
    Application& to_write(const std::string& what_happens);
    /// Throws ConfigError that says how, unless the program knows this follower.
    void check_has_follower(const std::string& name);

  private:
    void check_has_url() const;

    std::unique_ptr<Application> application_;
};

/// Somebody said no.
struct NotConfirmed : std::runtime_error {
    NotConfirmed() : std::runtime_error("not confirmed; nothing was done") {}
};

/// Each adds the commands of its file.
void add_stream_commands(CLI::App& app, Console& console);
void add_tail_command(CLI::App& app, Console& console);
void add_transactions_command(CLI::App& app, Console& console);
void add_locks_command(CLI::App& app, Console& console);
void add_follower_commands(CLI::App& app, Console& console);
void add_timers_command(CLI::App& app, Console& console);
void add_doctor_command(CLI::App& app, Console& console);
void add_stats_command(CLI::App& app, Console& console);
void add_check_command(CLI::App& app, Console& console);
void add_archive_commands(CLI::App& app, Console& console);
void add_serve_command(CLI::App& app, Console& console);
void add_help_commands(CLI::App& app, Console& console);

}  // namespace varve::console
