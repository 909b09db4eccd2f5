#include "connection.h"

#include <varve/core/clock.h>
#include <varve/core/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

constexpr std::int64_t wait_us_max = 2000;

std::string with_errno(std::string text, int error) {
    return error == 0 ? text : text + " (" + std::strerror(error) + ")";
}

/// The errno behind `code`. SQLite does not keep that of a failed COMMIT with the connection, only with the log's file.
int system_error(sqlite3* connection, int code) {
    int error = sqlite3_system_errno(connection);
    if (error != 0 || (code & 0xff) != SQLITE_IOERR) return error;
    sqlite3_file* log = nullptr;
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log != nullptr && log->pMethods != nullptr) log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
    return error;
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

bool Statement::step() {
    const int code = sqlite3_step(statement_);
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

Connection::Connection(const Options& options, Mode mode) : options_(options) {
    const int flags =
        SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
        (mode == Mode::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : static_cast<int>(SQLITE_OPEN_READONLY));
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(options.path.c_str(), &connection, flags, nullptr);
    connection_.reset(connection);
    if (code != SQLITE_OK) raise(code);
    sqlite3_busy_handler(connection, &Connection::wait, this);
    sqlite3_wal_hook(connection, &Connection::after_commit, this);
}

Connection::~Connection() = default;

Statement Connection::prepare(const std::string& sql) {
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
        sqlite3_stmt* statement = nullptr;
        const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                            SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
        if (code != SQLITE_OK) raise(code);
        found = statements_.emplace(sql, statement).first;
    }
    return {*this, found->second.get()};
}

void Connection::begin() {
    static const std::string sql = "BEGIN IMMEDIATE";
    execute(sql);
}

void Connection::commit() {
    static const std::string sql = "COMMIT";
    try {
        execute(sql);
    } catch (const Error& error) {
        rollback();
        // Without space, the log's last frame is incomplete, and every reader passes over it. After other errors of the
        // disk, it may be whole, and come back when the log is read again.
        const bool certain = error.kind() == ErrorKind::busy || error.kind() == ErrorKind::storage_full ||
                             error.kind() == ErrorKind::read_only;
        varve::raise({.kind = certain ? error.kind() : ErrorKind::in_doubt,
                      .in_doubt = !certain,
                      .message = certain ? error.what()
                                         : std::string{error.what()} +
                                               "; the commit may or may not take effect, read to learn which"});
    }
}

void Connection::rollback() noexcept {
    if (connection_ && sqlite3_get_autocommit(connection_.get()) == 0) {
        sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
}

void Connection::checkpoint(Checkpoint how) noexcept {
    int in_log = 0;
    int moved = 0;
    const int mode = how == Checkpoint::wait_for_readers ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    sqlite3_wal_checkpoint_v2(connection_.get(), nullptr, mode, &in_log, &moved);
}

bool Connection::moved() const {
    int moved = 0;
    sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

bool Connection::read_only() const {
    return sqlite3_db_readonly(connection_.get(), "main") == 1;
}

/// Short sleeps of random length: SQLite's own handler soon sleeps for 100 ms at a time, while a commit takes less than
/// one, so that processes which share a file would starve beside one that never sleeps.
int Connection::wait(void* self, int attempts) {
    auto& connection = *static_cast<Connection*>(self);
    if (attempts == 0) connection.waited_us_ = 0;
    if (connection.waited_us_ >= std::chrono::microseconds{connection.options_.busy_timeout}.count()) return 0;
    const std::int64_t bound = std::min(wait_us_max, std::int64_t{100} << std::min(attempts, 10));
    const std::int64_t sleep_us =
        1 + static_cast<std::int64_t>(Random::system().below(static_cast<std::uint64_t>(bound)));
    const auto before = std::chrono::steady_clock::now();
    Clock::system().sleep_for(std::chrono::microseconds{sleep_us});
    connection.waited_us_ +=
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - before).count();
    return 1;
}

int Connection::after_commit(void* self, sqlite3*, const char*, int pages) {
    static_cast<Connection*>(self)->log_pages_ = pages;
    return SQLITE_OK;
}

Failure Connection::failure(int code) const {
    const std::string file = "the SQLite file " + options_.path;
    const int error = connection_ ? system_error(connection_.get(), code) : 0;
    const std::string reason =
        with_errno(connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code), error);
    const auto full = [&] {
        return Failure{ErrorKind::storage_full, false,
                       "no space is left for " + file + ": " + reason + "; free some, then try again"};
    };
    const auto unwritable = [&] {
        return Failure{ErrorKind::read_only, false,
                       file + " cannot be written: " + reason + "; make the file and its directory writable"};
    };
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_PROTOCOL:
            return {ErrorKind::busy, false,
                    file + " was locked by another process for more than " +
                        std::to_string(options_.busy_timeout.count()) +
                        " ms; find out what holds it, or raise busy_timeout_ms"};
        case SQLITE_FULL: return full();
        case SQLITE_READONLY:
        case SQLITE_PERM: return unwritable();
        case SQLITE_CORRUPT:
        case SQLITE_FORMAT:
            return {ErrorKind::corruption, false,
                    file + " is damaged: " + reason + "; save a copy, then restore a backup or use sqlite3's .recover"};
        case SQLITE_NOTADB:
            return {ErrorKind::corruption, false, file + " is no SQLite database, or its beginning is destroyed"};
        case SQLITE_TOOBIG: return {ErrorKind::invalid, false, "too large for " + file + ": " + reason};
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
            if (error == ENOSPC || error == EDQUOT || error == EFBIG) return full();
            if (error == EACCES || error == EPERM || error == EROFS) return unwritable();
            return {ErrorKind::unavailable, false,
                    file + ((code & 0xff) == SQLITE_CANTOPEN ? " cannot be opened: " : " cannot be read or written: ") +
                        reason};
        case SQLITE_NOMEM:
        case SQLITE_INTERRUPT: return {ErrorKind::unavailable, false, "no answer from " + file + ": " + reason};
        default:
            return {ErrorKind::corruption, false,
                    file + " does not have the form that was expected: " + reason + "; was it changed by hand?"};
    }
}

}  // namespace varve::sqlite
