#pragma once

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <stop_token>

/// What is in a store, as a file, and back into another store, behind whatever adapter: for who moves to another store
/// or keeps a copy that no adapter is needed to read. docs/moving.md says what comes along, and the file's grammar.
///
///     std::ofstream file{"bank.jsonl"};
///     varve::operations::export_store(*varve::open("sqlite:bank.db"), file);
///     …
///     std::ifstream file{"bank.jsonl"};
///     varve::operations::import_store(file, *varve::open("postgres:…"));
///
/// Both take memory for a few megabytes, however large the store is.
///
/// Threads: each call is made by one thread; several may run at once, on different targets.
namespace varve::operations {

/// What has been moved so far.
struct Progress {
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;  ///< of the file; of a copy: of the items
};

/// What was moved in all. An import that was resumed, or a copy, counts what is in the target.
struct Moved {
    std::uint64_t slots = 0;     ///< that followers see
    std::uint64_t receipts = 0;  ///< of commands that had ids
    std::uint64_t rows = 0;      ///< of all tables, the framework's own too
    std::uint64_t snapshots = 0;
    std::uint64_t locks = 0;   ///< counters and fences
    std::uint64_t bytes = 0;   ///< of the file; of a copy: of the items
    bool is_complete = false;  ///< false: it was asked to stop
};

struct ExportOptions {
    /// Only the events, up to where they end as it begins; writers may go on. Without rows, checkpoints and receipts
    /// nobody goes on where he was: this is for who reads the events, or begins anew with them.
    bool events_only = false;
    std::function<void(const Progress&)> progress = {};  ///< called in between, by the caller's thread
    std::stop_token stop = {};
    Runtime runtime = {};
};

/// Writes a store to `to`. Changes nothing in it, but for tables that it makes if they are missing. The store has to be
/// quiet, unless it is the events alone that are asked for: end all applications first.
///
/// Errors: ConflictError if somebody has written meanwhile, or has left a transaction unfinished; ConfigError for a
/// store that holds nothing of varve's, whose import is unfinished, or whose events have no order; CorruptionError
/// naming what cannot be read; UnavailableError if `to` takes no more; those of the store. What is in `to` by then is
/// refused by an import.
Moved export_store(store::ItemStore& from, std::ostream& to, const ExportOptions& options = {});

struct ImportOptions {
    std::function<void(const Progress&)> progress = {};  ///< called in between, by the caller's thread
    std::stop_token stop = {};
    Runtime runtime = {};
};

/// Fills an empty store with what an export has written. It notes in the store how far it has come: whoever was stopped
/// begins again with the same file, and goes on there. Until it is complete no Application opens the store. The same
/// file once more, after that, changes nothing.
///
/// Errors: ConfigError for a store that is not empty, naming what is there, or that another file was begun in;
/// CorruptionError naming the line that is damaged, missing or not in its place: nothing of it or behind it has been
/// applied; ConflictError if somebody else writes to the store; those of the store.
Moved import_store(std::istream& from, store::ItemStore& to, const ImportOptions& options = {});

}  // namespace varve::operations
