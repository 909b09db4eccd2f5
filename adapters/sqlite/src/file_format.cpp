#include "file_format.h"

#include "connection.h"
#include "new_file.h"
#include "table.h"

#include <varve/core/clock.h>

#include <filesystem>

namespace varve::sqlite {
namespace {

constexpr std::int64_t application_id = 0x76617276;
constexpr std::int64_t format = 1;

std::int64_t number(Connection& connection, const std::string& sql) {
    Statement row = connection.prepare(sql);
    return row.step() ? row.integer(0) : 0;
}

/// False: the file is empty, and varve may make it its own.
bool belongs_to_varve(Connection& connection, const std::string& path) {
    const std::int64_t owner = number(connection, "PRAGMA application_id");
    const std::int64_t version = number(connection, "PRAGMA user_version");
    if (owner == 0 && version == 0 && number(connection, "SELECT count(*) FROM sqlite_schema") == 0) return false;
    if (owner != application_id) {
        throw ConfigError("the SQLite file " + path +
                          " belongs to another program, its application_id is not varve's; name another file");
    }
    if (version != format) {
        throw ConfigError("the SQLite file " + path + " has format " + std::to_string(version) +
                          ", this program knows format " + std::to_string(format) +
                          "; open it with the version of varve that wrote it, or a later one");
    }
    return true;
}

/// SQLite does not wait for locks where it changes the journal mode.
void use_write_ahead_log(Connection& connection, const Options& options) {
    const auto deadline = Clock::system().steady_now() + options.busy_timeout;
    for (;;) {
        try {
            connection.execute("PRAGMA journal_mode = WAL");
            return;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::busy || Clock::system().steady_now() >= deadline) throw;
        }
        Clock::system().sleep_for(std::chrono::milliseconds{1});
    }
}

/// Makes it a store, unless it is one.
void adopt(const Options& options) {
    Connection connection{options, Connection::Mode::write};
    if (connection.read_only()) {
        raise({ErrorKind::read_only, false,
               "the SQLite file " + options.path + " cannot be written; make the file and its directory writable"});
    }
    // As of one moment: another process may be making the file varve's just now.
    connection.execute("BEGIN");
    const bool is_ours = belongs_to_varve(connection, options.path);
    connection.execute("COMMIT");
    use_write_ahead_log(connection, options);
    if (is_ours) return;
    connection.begin();
    if (!belongs_to_varve(connection, options.path)) {
        create_catalogue(connection);
        connection.execute("PRAGMA application_id = " + std::to_string(application_id));
        connection.execute("PRAGMA user_version = " + std::to_string(format));
    }
    connection.commit();
}

}  // namespace

void prepare_file(const Options& options) {
    // SQLite's own message for both is "unable to open database file".
    const std::filesystem::path path{options.path};
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw ConfigError(options.path + " is a directory, not an SQLite file");
    }
    if (!std::filesystem::is_directory(path.parent_path(), ignored)) {
        throw ConfigError("there is no directory " + path.parent_path().string() + " for the SQLite file " +
                          options.path + "; create it");
    }
    std::error_code error;
    const bool is_there = std::filesystem::exists(path, error);
    if (error) throw ConfigError("the SQLite file " + options.path + " cannot be looked at: " + error.message());
    if (is_there && std::filesystem::file_size(path, ignored) == 0) {
        throw CorruptionError("the SQLite file " + options.path +
                              " is empty, which no store ever is; restore a backup, or remove it to begin a new one");
    }
    if (is_there) return adopt(options);
    if (options.tables == Tables::expect) {
        throw ConfigError("there is no SQLite file " + options.path +
                          ", and tables=expect does not let varve create one");
    }
    // SQLite would take the new file for what the log belongs to, and throw the log away.
    const std::string log = options.path + "-wal";
    if (std::filesystem::exists(log, ignored) && std::filesystem::file_size(log, ignored) > 0) {
        throw CorruptionError("the SQLite file " + options.path + " is gone, but its write-ahead log " + log +
                              " is there; put the file back, or remove the log to begin a new store");
    }
    NewFile made{options.path, options.mode};
    Options at_first = options;
    at_first.path = made.path();
    adopt(at_first);
    // By another process, just now: it is as good.
    (void)made.put_in_place();
}

}  // namespace varve::sqlite
