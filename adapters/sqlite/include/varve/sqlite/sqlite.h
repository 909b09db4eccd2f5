#pragma once

#include <varve/core/runtime.h>
#include <varve/store/item_store.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace varve::sqlite {

/// When an answered write has reached the disk.
enum class Synchronous {
    full,    ///< before it is answered: it survives a power cut
    normal,  ///< at the next checkpoint: it survives the death of every process, not a power cut
};

enum class Tables {
    create,  ///< file and tables that are missing are created
    expect,  ///< a missing one is a ConfigError
};

struct Options {
    std::string path;
    Synchronous synchronous = Synchronous::full;
    std::chrono::milliseconds busy_timeout{5000};  ///< how long to wait for a lock that another process holds
    unsigned mode = 0666;  ///< permissions of a file that is created, less the process's umask; its two companions
                           ///< always have those of the file
    Tables tables = Tables::create;
    Log* log = &Log::standard_error();  ///< where it warns of a log that grows; must outlive the store
};

/// Opens the store in the SQLite file at `path`, which is created if it is not there. What `varve::open` does with
///
///     sqlite:PATH[?synchronous=full|normal&busy_timeout_ms=N&mode=OCTAL&tables=create|expect]
///
/// Several processes, and several stores of one process, may have one file open. A process that forks must open its
/// stores after the fork: SQLite's locks do not survive it.
///
/// Throws ConfigError (no such directory, a file of another program or of a newer varve), CorruptionError (no SQLite
/// file, a damaged or an empty one, a write-ahead log without its file), UnavailableError, and Error of kind busy,
/// read_only or storage_full.
///
/// Threads: as every ItemStore. It starts none of its own.
std::shared_ptr<store::ItemStore> open(const Options& options);

/// What a store that `open` gave has met in this process so far.
struct Metrics {
    std::uint64_t log_bytes;              ///< in the write-ahead log after the last commit
    std::uint64_t checkpoints;            ///< times that the log was moved into the file, whole
    std::uint64_t checkpoints_held_back;  ///< times that a reader in an old state, or the disk, left some of it
};

/// Throws InvalidError if `store` is none that `open` gave. Threads: any.
Metrics metrics(const store::ItemStore& store);

/// How far a backup has come.
struct BackupProgress {
    std::uint64_t bytes;        ///< copied so far
    std::uint64_t bytes_total;  ///< to be copied
};

/// Copies `store`, as it is at the beginning of the call, to the new file `to`, while everybody goes on reading and
/// writing. The copy is whole, flushed, and a store like the one it was made of:
///
///     varve::sqlite::backup(*store, "/backups/monday.db");
///     auto restored = varve::open("sqlite:/backups/monday.db");
///
/// Until it ends, what others write meanwhile stays in the write-ahead log, so it takes about as much more room.
/// `progress` is called every few megabytes, in the calling thread; if it throws, there is no copy.
///
/// Throws InvalidError if `store` is none that `open` gave, ConfigError if there is a file `to` already, and what
/// `open` throws. Threads: any.
void backup(const store::ItemStore& store, const std::string& to,
            const std::function<void(const BackupProgress&)>& progress = {});

}  // namespace varve::sqlite
