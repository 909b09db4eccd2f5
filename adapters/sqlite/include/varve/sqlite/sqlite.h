#pragma once

#include <varve/store/item_store.h>

#include <chrono>
#include <memory>
#include <string>

namespace varve::sqlite {

/// When an answered write has reached the disk.
enum class Synchronous {
    full,    ///< before it is answered: it survives a power cut
    normal,  ///< at the next checkpoint: it survives the death of every process, not a power cut
};

struct Options {
    std::string path;
    Synchronous synchronous = Synchronous::full;
    std::chrono::milliseconds busy_timeout{5000};  ///< how long to wait for a lock that another process holds
};

/// Opens the store in the SQLite file at `path`, which is created if it is not there. What `varve::open` does with
///
///     sqlite:PATH[?synchronous=full|normal&busy_timeout_ms=N]
///
/// Several processes, and several stores of one process, may have one file open. A process that forks must open its
/// stores after the fork: SQLite's locks do not survive it.
///
/// Throws ConfigError (no such directory, a file of another program or of a newer varve), CorruptionError (no SQLite
/// file, or a damaged one), UnavailableError, and Error of kind busy, read_only or storage_full.
///
/// Threads: as every ItemStore. It starts none of its own.
std::shared_ptr<store::ItemStore> open(const Options& options);

}  // namespace varve::sqlite
