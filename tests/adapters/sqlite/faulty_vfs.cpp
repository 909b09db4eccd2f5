#include "faulty_vfs.h"

#include <cassert>
#include <cerrno>
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

/// The same, told of before.
template <auto method>
struct Told;
template <class Result, class... Arguments, Result (*sqlite3_io_methods::*method)(sqlite3_file*, Arguments...)>
struct Told<method> {
    static Result call(sqlite3_file* file, Arguments... arguments) {
        if (current->before_each_call) current->before_each_call();
        return (inner(file)->pMethods->*method)(inner(file), arguments...);
    }
};

int read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
    // As SQLite itself tells of EIO.
    if (current->reads_to_come >= 0 && current->reads_to_come-- == 0) {
        current->reads_to_come = 0;
        errno = EIO;
        return SQLITE_IOERR_CORRUPTFS;
    }
    return Told<&sqlite3_io_methods::xRead>::call(file, data, size, offset);
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    if (current->disk_full) return SQLITE_FULL;
    return Told<&sqlite3_io_methods::xWrite>::call(file, data, size, offset);
}

int sync(sqlite3_file* file, int flags) {
    if (reinterpret_cast<File*>(file)->is_log) ++current->log_syncs;
    if (current->sync_us > 0) std::this_thread::sleep_for(std::chrono::microseconds{current->sync_us});
    if (current->sync_error != 0) {
        errno = current->sync_error;
        return SQLITE_IOERR_FSYNC;
    }
    return Told<&sqlite3_io_methods::xSync>::call(file, flags);
}

int control(sqlite3_file* file, int operation, void* argument) {
    const int error = current->sync_error != 0 ? current->sync_error.load() : current->reads_to_come == 0 ? EIO : 0;
    if (operation == SQLITE_FCNTL_LAST_ERRNO && error != 0) {
        *static_cast<int*>(argument) = error;
        return SQLITE_OK;
    }
    return inner(file)->pMethods->xFileControl(inner(file), operation, argument);
}

const sqlite3_io_methods methods{
    .iVersion = 2,
    .xClose = Pass<&sqlite3_io_methods::xClose>::call,
    .xRead = read,
    .xWrite = write,
    .xTruncate = Told<&sqlite3_io_methods::xTruncate>::call,
    .xSync = sync,
    .xFileSize = Pass<&sqlite3_io_methods::xFileSize>::call,
    .xLock = Pass<&sqlite3_io_methods::xLock>::call,
    .xUnlock = Pass<&sqlite3_io_methods::xUnlock>::call,
    .xCheckReservedLock = Pass<&sqlite3_io_methods::xCheckReservedLock>::call,
    .xFileControl = control,
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
    if ((flags & SQLITE_OPEN_WAL) != 0) ++current->log_opens;
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
