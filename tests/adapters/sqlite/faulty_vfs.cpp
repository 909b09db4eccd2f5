#include "faulty_vfs.h"

#include <cassert>
#include <chrono>
#include <cstddef>
#include <thread>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

FaultyVfs* current = nullptr;
sqlite3_vfs* real = nullptr;

/// What SQLite allocates per file: this, and behind it the file of the real VFS.
struct File {
    sqlite3_file base;
    bool is_log;
};
constexpr int file_bytes = (static_cast<int>(sizeof(File)) + 15) / 16 * 16;

sqlite3_file* inner(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + file_bytes);
}

/// Passes a method on as it is.
template <auto method>
struct Pass;
template <class Result, class... Arguments, Result (*sqlite3_io_methods::*method)(sqlite3_file*, Arguments...)>
struct Pass<method> {
    static Result call(sqlite3_file* file, Arguments... arguments) {
        return (inner(file)->pMethods->*method)(inner(file), arguments...);
    }
};

int read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
    if (current->read_fails) return SQLITE_IOERR_READ;
    return inner(file)->pMethods->xRead(inner(file), data, size, offset);
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    if (current->disk_full) return SQLITE_FULL;
    return inner(file)->pMethods->xWrite(inner(file), data, size, offset);
}

int sync(sqlite3_file* file, int flags) {
    if (reinterpret_cast<File*>(file)->is_log) ++current->log_syncs;
    if (current->sync_us > 0) std::this_thread::sleep_for(std::chrono::microseconds{current->sync_us});
    if (current->sync_fails) return SQLITE_IOERR_FSYNC;
    return inner(file)->pMethods->xSync(inner(file), flags);
}

const sqlite3_io_methods methods{
    .iVersion = 2,
    .xClose = Pass<&sqlite3_io_methods::xClose>::call,
    .xRead = read,
    .xWrite = write,
    .xTruncate = Pass<&sqlite3_io_methods::xTruncate>::call,
    .xSync = sync,
    .xFileSize = Pass<&sqlite3_io_methods::xFileSize>::call,
    .xLock = Pass<&sqlite3_io_methods::xLock>::call,
    .xUnlock = Pass<&sqlite3_io_methods::xUnlock>::call,
    .xCheckReservedLock = Pass<&sqlite3_io_methods::xCheckReservedLock>::call,
    .xFileControl = Pass<&sqlite3_io_methods::xFileControl>::call,
    .xSectorSize = Pass<&sqlite3_io_methods::xSectorSize>::call,
    .xDeviceCharacteristics = Pass<&sqlite3_io_methods::xDeviceCharacteristics>::call,
    .xShmMap = Pass<&sqlite3_io_methods::xShmMap>::call,
    .xShmLock = Pass<&sqlite3_io_methods::xShmLock>::call,
    .xShmBarrier = Pass<&sqlite3_io_methods::xShmBarrier>::call,
    .xShmUnmap = Pass<&sqlite3_io_methods::xShmUnmap>::call,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    const int code = real->xOpen(real, name, inner(file), flags, out);
    file->pMethods = inner(file)->pMethods == nullptr ? nullptr : &methods;
    reinterpret_cast<File*>(file)->is_log = (flags & SQLITE_OPEN_WAL) != 0;
    return code;
}

sqlite3_vfs faulty;

}  // namespace

FaultyVfs::FaultyVfs() {
    assert(current == nullptr);
    current = this;
    real = sqlite3_vfs_find(nullptr);
    // The other methods get a vfs that looks like the real one to them: the same data, other sizes.
    faulty = *real;
    faulty.zName = "faulty";
    faulty.szOsFile = file_bytes + real->szOsFile;
    faulty.xOpen = open;
    sqlite3_vfs_register(&faulty, 1);
}

FaultyVfs::~FaultyVfs() {
    sqlite3_vfs_register(real, 1);
    sqlite3_vfs_unregister(&faulty);
    current = nullptr;
}

}  // namespace varve::sqlite
