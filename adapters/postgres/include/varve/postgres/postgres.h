#pragma once

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace varve::postgres {

enum class Tables {
    create,  ///< schema and tables that are missing are created
    expect,  ///< a missing one is a ConfigError; `ddl` gives what to apply by hand
};

struct Options {
    /// How libpq is to connect: a URI, as in postgres://bank@db.example/ledger, or "host=… dbname=…". What it does not
    /// say comes from libpq's environment (PGHOST, PGPASSFILE …).
    std::string connection;
    /// Where the tables are; 1 to 40 of a-z 0-9 _, the first one no digit.
    std::string schema = "varve";
    Tables tables = Tables::create;
    /// How long to wait for another process's transaction, and for a connection of one's own; then `busy`.
    std::chrono::milliseconds lock_timeout{5'000};
    /// How long an answer may take; and a connection to be made.
    std::chrono::milliseconds timeout{30'000};
    /// Connections for reading; two more for writing. 1 to 1000.
    unsigned connections = 8;
    /// A server whose fsync is off, or whose commits do not wait for their flush, loses what it has acknowledged when
    /// its machine dies. Such a server is refused unless these say that it is meant.
    bool accept_fsync_off = false;
    bool accept_asynchronous_commit = false;
    /// Whether followers in other processes are woken by what this one commits, and this one's by theirs, through
    /// NOTIFY; that takes one connection more, and a thread. Without it they look by themselves from time to time.
    bool notify = true;
    Runtime runtime = {};  ///< for its thread, and for the pauses between attempts
};

/// Opens the store. What `varve::open` does with
///
///     postgres://[USER@]HOST[:PORT]/DATABASE[?schema=NAME&tables=expect&…]
///
/// and the options of README.md, libpq's among them.
///
/// Throws ConfigError (an option, who may not connect, a server that does not keep what it answers), UnavailableError,
/// and Error of kind read_only (a standby). A password never appears in a message.
///
/// Threads: as every ItemStore. It starts one of its own, unless `notify` is off.
std::shared_ptr<store::ItemStore> open(const Options& options);

/// The SQL that creates this store's schema and all its tables, without what is in them, for those who apply it by hand
/// to another database: a store in which an application has been tried has the tables that it needs. It does nothing
/// where all of it is there. At its end `role`, unless that is empty, is granted what it needs to run the application.
///
/// Throws InvalidError (the store is not one in PostgreSQL, or has no tables yet) and UnavailableError.
std::string ddl(store::ItemStore& store, std::string_view role = {});

}  // namespace varve::postgres
