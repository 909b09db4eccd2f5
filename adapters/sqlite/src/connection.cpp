#include "connection.h"

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

constexpr std::int64_t wait_us_max = 2000;

const std::string& commit_sql() noexcept {
    static const std::string sql = "COMMIT";
    return sql;
}

std::string with_errno(std::string text, int error) {
    return error == 0 ? text : text + " (" + std::strerror(error) + ")";
}

int last_errno(sqlite3* connection, int file_pointer) {
    sqlite3_file* file = nullptr;
    int error = 0;
    sqlite3_file_control(connection, "main", file_pointer, &file);
    if (file != nullptr && file->pMethods != nullptr)
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
    return error;
}

/// The errno behind `code`. SQLite does not keep that of a failed COMMIT with the connection, only with the log's file;
/// and what the disk could not read it calls damaged.
int system_error(sqlite3* connection, int code) noexcept {
    const int primary = code & 0xff;
    if (primary == SQLITE_CORRUPT) {
        for (const int file : {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
            const int error = last_errno(connection, file);
            if (error == EIO || error == ENXIO) return error;
        }
        return 0;
    }
    const int error = sqlite3_system_errno(connection);
    if (error != 0 || primary != SQLITE_IOERR) return error;
    return last_errno(connection, SQLITE_FCNTL_JOURNAL_POINTER);
}

}  // namespace

Statement::~Statement() {
    sqlite3_reset(statement_);
}

Statement& Statement::bind(int index, std::int64_t value) {
    const int code = sqlite3_bind_int64(statement_, index, value);
    if (code != SQLITE_OK) connection_.raise(code);
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    const int code = sqlite3_bind_text64(statement_, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    if (code != SQLITE_OK) connection_.raise(code);
    return *this;
}

Statement& Statement::bind(int index, const store::SortKey& sort) {
    if (const auto* number = std::get_if<std::int64_t>(&sort)) return bind(index, *number);
    if (const auto* text = std::get_if<std::string>(&sort)) return bind(index, std::string_view{*text});
    return *this;
}

int Statement::try_step(Duration spent) {
    const Waiting::Call call{connection_.waiting_, spent};
    return sqlite3_step(statement_);
}

bool Statement::step() {
    const int code = try_step();
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) connection_.raise(code);
    return false;
}

int Statement::run() {
    while (step()) {
    }
    return sqlite3_changes(sqlite3_db_handle(statement_));
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

std::string_view Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return data == nullptr ? std::string_view{}
                           : std::string_view{data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Connection::Close::operator()(sqlite3* connection) const {
    sqlite3_close_v2(connection);
}

void Connection::Close::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Connection::Connection(const Options& options, Mode mode) : options_(options), waiting_(options.busy_timeout) {
    const int flags =
        SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
        (mode == Mode::write ? static_cast<int>(SQLITE_OPEN_READWRITE) : static_cast<int>(SQLITE_OPEN_READONLY));
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(options.path.c_str(), &connection, flags, Waiting::vfs());
    connection_.reset(connection);
    if (code != SQLITE_OK) raise(code);
    sqlite3_busy_handler(connection, &Connection::wait, this);
    sqlite3_wal_hook(connection, &Connection::after_commit, this);
}

Connection::~Connection() {
    if (!process_.is_another()) return;
    // SQLite must not even close what its parent has open.
    for (auto& [sql, statement] : statements_) abandon(std::move(statement));
    abandon(std::move(connection_));
}

Statement Connection::prepare(const std::string& sql) {
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
        sqlite3_stmt* statement = nullptr;
        const Waiting::Call call{waiting_};
        const auto compile = [&] {
            return sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
        };
        int code = compile();
        if (code == SQLITE_ERROR) {
            // That a table is missing SQLite also says by a schema that it could not compare with the file's.
            code = sqlite3_exec(connection_.get(), "SELECT 1 FROM sqlite_schema LIMIT 1", nullptr, nullptr, nullptr);
            if (code == SQLITE_OK) code = compile();
        }
        std::unique_ptr<sqlite3_stmt, Close> owned{statement};
        if (code != SQLITE_OK) raise(code);
        found = statements_.emplace(sql, std::move(owned)).first;
    }
    return {*this, found->second.get()};
}

void Connection::begin(Duration spent) {
    static const std::string sql = "BEGIN IMMEDIATE";
    (void)prepare(commit_sql());
    Statement statement = prepare(sql);
    const int code = statement.try_step(spent);
    if (code != SQLITE_DONE) raise(code);
}

std::optional<Failure> Connection::try_commit() noexcept {
    // Prepared by `begin`: from here to the answer nothing needs memory, except for a longer message.
    Statement statement = prepare(commit_sql());
    const int code = statement.try_step();
    if (code == SQLITE_DONE) return std::nullopt;
    // A write that found no room leaves the log's last frame incomplete, and every reader passes over it. After
    // anything else it may be whole, and come back when the log is read again: also after a flush that found no room,
    // since what was to be flushed had been written.
    const int primary = code & 0xff;
    const bool certain = primary == SQLITE_BUSY || primary == SQLITE_FULL || primary == SQLITE_READONLY ||
                         (code == SQLITE_IOERR_WRITE && kind(code) != ErrorKind::unavailable);
    Failure failure{.kind = kind(code), .in_doubt = false, .message = {}};
    try {
        failure = this->failure(code);
        if (!certain) failure.message += "; the commit may or may not take effect, read to learn which";
    } catch (const std::bad_alloc&) {
    }
    if (!certain) {
        failure.kind = ErrorKind::in_doubt;
        failure.in_doubt = true;
    }
    rollback();
    return failure;
}

void Connection::commit() {
    if (const std::optional<Failure> failure = try_commit()) varve::raise(*failure);
}

void Connection::rollback() noexcept {
    if (connection_ && sqlite3_get_autocommit(connection_.get()) == 0) {
        sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
}

Connection::Checkpoint Connection::checkpoint() {
    Checkpoint done{};
    const Waiting::Call call{waiting_};
    const int code = sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &done.log_pages,
                                               &done.moved_pages);
    if (code == SQLITE_BUSY) return {.log_pages = 1, .moved_pages = 0};  // another one is running
    if (code != SQLITE_OK) raise(code);
    return done;
}

bool Connection::read_only() const {
    return sqlite3_db_readonly(connection_.get(), "main") == 1;
}

/// Short sleeps of random length: SQLite's own handler soon sleeps for 100 ms at a time, while a commit takes less than
/// one, so that processes which share a file would starve beside one that never sleeps.
int Connection::wait(void* self, int attempts) {
    auto& connection = *static_cast<Connection*>(self);
    const std::int64_t bound = std::min(wait_us_max, std::int64_t{100} << std::min(attempts, 10));
    const std::int64_t sleep_us =
        1 + static_cast<std::int64_t>(Random::system().below(static_cast<std::uint64_t>(bound)));
    return connection.waiting_.sleep(Duration{sleep_us}) ? 1 : 0;
}

int Connection::after_commit(void* self, sqlite3*, const char*, int pages) {
    static_cast<Connection*>(self)->log_pages_ = pages;
    return SQLITE_OK;
}

ErrorKind Connection::kind(int code) const noexcept {
    const int primary = code & 0xff;
    switch (primary) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_PROTOCOL: return ErrorKind::busy;
        case SQLITE_FULL: return ErrorKind::storage_full;
        case SQLITE_READONLY:
        case SQLITE_PERM: return ErrorKind::read_only;
        case SQLITE_TOOBIG: return ErrorKind::invalid;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
            switch (connection_ ? system_error(connection_.get(), code) : 0) {
                case ENOSPC:
                case EDQUOT:
                case EFBIG: return ErrorKind::storage_full;
                case EACCES:
                case EPERM:
                case EROFS: return ErrorKind::read_only;
                default: return ErrorKind::unavailable;
            }
        case SQLITE_NOMEM:
        case SQLITE_INTERRUPT: return ErrorKind::unavailable;
        case SQLITE_CORRUPT:
            return connection_ && system_error(connection_.get(), code) != 0 ? ErrorKind::unavailable
                                                                             : ErrorKind::corruption;
        default: return ErrorKind::corruption;
    }
}

Failure Connection::failure(int code) const {
    const std::string file = "the SQLite file " + options_.path;
    const int primary = code & 0xff;
    const std::string reason = with_errno(connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code),
                                          connection_ ? system_error(connection_.get(), code) : 0);
    const ErrorKind kind = this->kind(code);
    const auto failed = [&](std::string message) {
        return Failure{.kind = kind, .in_doubt = false, .message = std::move(message)};
    };
    if (kind == ErrorKind::busy) {
        return failed(file + " was locked by another process for more than " +
                      std::to_string(options_.busy_timeout.count()) +
                      " ms; find out what holds it, or raise busy_timeout_ms");
    }
    if (kind == ErrorKind::storage_full) {
        return failed("no space is left for " + file + ": " + reason + "; free some, then try again");
    }
    if (kind == ErrorKind::read_only) {
        return failed(file + " cannot be written: " + reason + "; make the file and its directory writable");
    }
    if (kind == ErrorKind::unavailable && primary != SQLITE_NOMEM && primary != SQLITE_INTERRUPT) {
        return failed(file + (primary == SQLITE_CANTOPEN ? " cannot be opened: " : " cannot be read or written: ") +
                      reason + "; look at the disk");
    }
    if (kind == ErrorKind::unavailable) return failed("no answer from " + file + ": " + reason);
    if (kind == ErrorKind::invalid) return failed("too large for " + file + ": " + reason);
    if (primary == SQLITE_CORRUPT || primary == SQLITE_FORMAT) {
        return failed(file + " is damaged: " + reason +
                      "; save a copy, then restore a backup or use sqlite3's .recover");
    }
    if (primary == SQLITE_NOTADB) return failed(file + " is no SQLite database, or its beginning is destroyed");
    return failed(file + " does not have the form that was expected: " + reason + "; was it changed by hand?");
}

}  // namespace varve::sqlite
