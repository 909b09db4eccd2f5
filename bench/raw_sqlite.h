#pragma once

#include <filesystem>
#include <string>

#include <sqlite3.h>

namespace bench {

/// SQLite without varve, as durable as the adapter: WAL, synchronous=FULL, one table of slots.
class RawSqlite {
  public:
    explicit RawSqlite(const std::filesystem::path& file);
    ~RawSqlite();
    RawSqlite(const RawSqlite&) = delete;
    RawSqlite& operator=(const RawSqlite&) = delete;

    /// Inserts `rows` new slots of `bytes` each in one transaction.
    void commit(int rows, std::size_t bytes);
    /// Reads a stream's items in order; returns how many.
    int select(const std::string& stream);

  private:
    sqlite3* db_ = nullptr;
    sqlite3_stmt* insert_ = nullptr;
    sqlite3_stmt* select_ = nullptr;
    long next_ = 0;
};

}  // namespace bench
