#pragma once

#include <varve/core/error.h>
#include <varve/sqlite/sqlite.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace varve::sqlite {

class Connection;

/// A prepared statement, reset when it goes out of scope. Text that is bound must live until then.
///
/// Threads: those of its connection.
class Statement {
  public:
    Statement(Connection& connection, sqlite3_stmt* statement) : connection_(connection), statement_(statement) {}
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& bind(int index, std::int64_t value);
    Statement& bind(int index, std::string_view text);
    Statement& bind(int index, const store::SortKey& sort);
    /// True: there is a row. Throws Error of the kind that belongs to SQLite's code.
    bool step();
    /// For statements without rows; the number of rows it changed.
    int run();

    std::int64_t integer(int column) const;
    /// Valid until the next step.
    std::string_view text(int column) const;

  private:
    Connection& connection_;
    sqlite3_stmt* statement_;
};

/// One connection to the file, with its prepared statements.
///
/// Threads: one at a time.
class Connection {
  public:
    enum class Mode { read, write };

    /// Opens the file; in Mode::write it is created if need be. `options` must outlive the connection.
    Connection(const Options& options, Mode mode);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// Prepared once per connection; only one use of the same text at a time.
    Statement prepare(const std::string& sql);
    void execute(const std::string& sql) { prepare(sql).run(); }

    /// Takes the right to write, waiting for other processes up to busy_timeout.
    void begin();
    /// Commits; after a failure nothing is open any more. The failure's `in_doubt` tells whether it may yet take
    /// effect.
    void commit();
    /// Ends what `begin` began, if SQLite has not done so by itself. Never fails.
    void rollback() noexcept;

    /// Moves what the write-ahead log holds into the database file. `wait_for_readers` makes sure that the log can
    /// begin anew. A failure is harmless: the log stays, and the next checkpoint repeats the work.
    enum class Checkpoint { as_far_as_possible, wait_for_readers };
    void checkpoint(Checkpoint how) noexcept;
    /// Pages in the write-ahead log after this connection's last commit.
    int log_pages() const { return log_pages_; }

    /// The file that was opened is no longer the one under its path.
    bool moved() const;
    bool read_only() const;

    /// What SQLite's `code` means to a caller.
    Failure failure(int code) const;
    [[noreturn]] void raise(int code) const { varve::raise(failure(code)); }

  private:
    static int wait(void* self, int attempts);
    static int after_commit(void* self, sqlite3*, const char*, int pages);

    struct Close {
        void operator()(sqlite3* connection) const;
        void operator()(sqlite3_stmt* statement) const;
    };

    const Options& options_;
    std::unique_ptr<sqlite3, Close> connection_;
    std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Close>> statements_;
    std::int64_t waited_us_ = 0;
    int log_pages_ = 0;
};

}  // namespace varve::sqlite
