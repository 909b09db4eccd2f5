#include "raw_sqlite.h"

#include <stdexcept>

namespace bench {
namespace {

void check(sqlite3* db, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) throw std::runtime_error(sqlite3_errmsg(db));
}

void run(sqlite3* db, const char* sql) {
    check(db, sqlite3_exec(db, sql, nullptr, nullptr, nullptr));
}

}  // namespace

RawSqlite::RawSqlite(const std::filesystem::path& file) {
    check(db_, sqlite3_open(file.c_str(), &db_));
    run(db_,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE IF NOT EXISTS events (aggregateId TEXT, version INTEGER, item TEXT, position INTEGER,"
        " PRIMARY KEY (aggregateId, version)) WITHOUT ROWID");
    check(db_, sqlite3_prepare_v2(db_, "INSERT INTO events VALUES (?1, ?2, ?3, ?2)", -1, &insert_, nullptr));
    check(db_, sqlite3_prepare_v2(db_, "SELECT version, item FROM events WHERE aggregateId = ?1 ORDER BY version", -1,
                                  &select_, nullptr));
}

RawSqlite::~RawSqlite() {
    sqlite3_finalize(insert_);
    sqlite3_finalize(select_);
    sqlite3_close(db_);
}

void RawSqlite::commit(int rows, std::size_t bytes) {
    const std::string item(bytes, 'x');
    if (rows > 1) run(db_, "BEGIN IMMEDIATE");
    for (int i = 0; i < rows; ++i) {
        const std::string id = "account-" + std::to_string(next_ % 1000);
        sqlite3_bind_text(insert_, 1, id.c_str(), -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(insert_, 2, ++next_);
        sqlite3_bind_text(insert_, 3, item.c_str(), static_cast<int>(item.size()), SQLITE_STATIC);
        check(db_, sqlite3_step(insert_));
        check(db_, sqlite3_reset(insert_));
    }
    if (rows > 1) run(db_, "COMMIT");
}

int RawSqlite::select(const std::string& stream) {
    sqlite3_bind_text(select_, 1, stream.c_str(), -1, SQLITE_TRANSIENT);
    int rows = 0;
    std::size_t bytes = 0;
    while (sqlite3_step(select_) == SQLITE_ROW) {
        ++rows;
        bytes += static_cast<std::size_t>(sqlite3_column_bytes(select_, 1));
        if (sqlite3_column_text(select_, 1) == nullptr) throw std::runtime_error("an item is missing");
    }
    check(db_, sqlite3_reset(select_));
    return bytes > 0 ? rows : 0;
}

}  // namespace bench
