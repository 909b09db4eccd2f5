#pragma once

#include "waiting.h"

#include <varve/core/error.h>
#include <varve/core/own_process.h>
#include <varve/sqlite/sqlite.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <memory>
#include <optional>
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
    /// As `step`, with SQLite's code for an answer. `spent`: so much less may it wait.
    int try_step(Duration spent = {});
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

    /// Opens the file, which must be there. `options` must outlive the connection.
    Connection(const Options& options, Mode mode);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// Prepared once per connection; only one use of the same text at a time.
    Statement prepare(const std::string& sql);
    void execute(const std::string& sql) { prepare(sql).run(); }

    /// Takes the right to write, waiting for other processes up to busy_timeout; less, if part of it is spent.
    void begin(Duration spent = {});
    /// Commits; after a failure nothing is open any more. The failure's `in_doubt` tells whether it may yet take
    /// effect. Then what the disk holds is not known either, and the connection is not to be used for another commit:
    /// the system may have dropped what it failed to write, and call the next flush of the same file a success.
    [[nodiscard]] std::optional<Failure> try_commit() noexcept;
    /// As `try_commit`, with the failure thrown.
    void commit();
    /// Ends what `begin` began, if SQLite has not done so by itself. Never fails.
    void rollback() noexcept;

    /// Moves what the write-ahead log holds into the database file, as far as readers in an old state and another
    /// checkpoint that is running allow, and waits for nobody. After a failure, which is thrown, the log still holds it
    /// all; the connection is not to be used any more, see `commit`.
    struct Checkpoint {
        int log_pages;    ///< at the beginning
        int moved_pages;  ///< of these
        bool is_whole() const { return moved_pages >= log_pages; }
    };
    Checkpoint checkpoint();
    /// Pages in the write-ahead log after this connection's last commit.
    int log_pages() const { return log_pages_; }

    bool read_only() const;
    /// For what this class has no words for; each use as one `call`.
    Waiting::Call call() { return Waiting::Call{waiting_}; }
    sqlite3* handle() const { return connection_.get(); }

    /// What SQLite's `code` means to a caller; the kind alone needs no memory.
    ErrorKind kind(int code) const noexcept;
    Failure failure(int code) const;
    [[noreturn]] void raise(int code) const { varve::raise(failure(code)); }

  private:
    friend class Statement;
    static int wait(void* self, int attempts);
    static int after_commit(void* self, sqlite3*, const char*, int pages);

    struct Close {
        void operator()(sqlite3* connection) const;
        void operator()(sqlite3_stmt* statement) const;
    };

    const Options& options_;
    std::unique_ptr<sqlite3, Close> connection_;
    std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Close>> statements_;
    Waiting waiting_;
    OwnProcess process_;
    int log_pages_ = 0;
};

}  // namespace varve::sqlite
