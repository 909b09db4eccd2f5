#pragma once

#include "parameters.h"

#include <varve/core/clock.h>
#include <varve/core/error.h>
#include <varve/core/own_process.h>
#include <varve/postgres/postgres.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct pg_conn;
struct pg_result;

namespace varve::postgres {

/// The rows that a statement gave.
class Result {
  public:
    explicit Result(pg_result* result) : result_(result) {}
    explicit operator bool() const { return result_ != nullptr; }
    pg_result* get() const { return result_.get(); }

    int rows() const;
    bool is_null(int row, int column) const;
    /// Valid as long as this object.
    std::string_view text(int row, int column) const;
    std::int64_t integer(int row, int column) const;
    /// Rows that were inserted, updated or deleted.
    std::int64_t affected() const;

  private:
    struct Clear {
        void operator()(pg_result* result) const;
    };
    std::unique_ptr<pg_result, Clear> result_;
};

/// One statement of a transaction.
struct Statement {
    const std::string& sql;
    Parameters parameters = {};
    bool is_run_once = false;  ///< else it is prepared when it is first run, and stays so
};

/// What has become of a transaction.
struct Outcome {
    std::vector<Result> results = {};     ///< one per statement, unless it failed
    std::optional<Failure> failure = {};  ///< in doubt: it may have been committed
    bool worth_repeating = false;         ///< it failed in a way that the store repeats by itself
    bool is_lost = false;                 ///< the connection is gone; what has certainly failed is repeated on another
};

/// One connection to the server, with its prepared statements.
///
/// A call sends all statements of a transaction at once, in one round trip. The server takes what it gets up to the end
/// of the message as one transaction and commits there, so none stays open while it waits for this process.
///
/// Threads: one at a time.
class Connection {
  public:
    /// Connects. `options` must outlive it.
    explicit Connection(const Options& options);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// Runs the statements as one transaction. What the world does to it is in the outcome. Throws std::bad_alloc; then
    /// the connection is not usable any more, and what was to be written is in doubt.
    Outcome run(std::span<const Statement> statements);
    /// A single statement that reads, on this very connection. Throws.
    Result read(const std::string& sql, Parameters parameters = {});

    /// From now on hears what other sessions tell on the channel. Throws.
    void listen(const std::string& channel);
    /// What they have told since the last call. Throws UnavailableError if the connection is lost.
    std::vector<std::string> heard();
    /// Becomes readable when there is something to be heard.
    int socket() const;

    /// False: it has failed, or the server has ended it meanwhile.
    bool is_usable();
    /// Names it in messages, as in "the PostgreSQL database ledger on db.example:5432".
    const std::string& where() const { return where_; }

  private:
    struct Close {
        void operator()(pg_conn* connection) const;
    };
    /// A request on its way: a statement, or the preparation of one.
    struct Step {
        bool is_preparation = false;
        const std::string* sql = nullptr;
    };

    /// One of those that a connection string names; what is empty is as the string has it.
    struct Host {
        std::string name;
        std::string address;
        std::string port;
    };

    static std::vector<Host> hosts_of(const std::string& connection);
    void connect();
    void connect(const Host& host, std::chrono::milliseconds timeout);
    void check_server();
    /// False: libpq could not take it.
    bool send(const Statement& statement, std::vector<Step>& steps);
    void receive(Outcome& outcome, std::span<const Step> steps);
    /// The server's next answer, nullptr at the end of a statement's; nullopt: there was none in time.
    std::optional<Result> next(SteadyTime until);
    /// What the server, or libpq for want of one, says of `result`.
    Failure failure_of(const Result& result) const;
    Failure no_answer(std::string_view why) const;

    const Options& options_;
    std::string where_;  // "the PostgreSQL database ledger on db.example:5432"
    std::unique_ptr<pg_conn, Close> connection_;
    std::unordered_map<std::string, std::string> prepared_;  // statements, and what the server knows them by
    bool is_broken_ = false;                                 // or in the middle of something
    OwnProcess process_;
};

}  // namespace varve::postgres
