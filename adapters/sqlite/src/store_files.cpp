#include "store_files.h"

#include <varve/core/error.h>

#include <sys/stat.h>

namespace varve::sqlite {

StoreFiles::StoreFiles(std::string path) {
    files_[0].path = std::move(path);
    files_[1].path = files_[0].path + "-wal";
    files_[2].path = files_[0].path + "-shm";
    for (File& file : files_) {
        struct stat found {};
        if (stat(file.path.c_str(), &found) != 0) continue;  // told by `check`
        file.device = found.st_dev;
        file.inode = found.st_ino;
    }
}

void StoreFiles::check() const {
    for (const File& file : files_) {
        struct stat found {};
        const bool is_there = stat(file.path.c_str(), &found) == 0;
        const bool is_same = is_there && found.st_dev == file.device && found.st_ino == file.inode;
        const bool is_database = &file == &files_.front();
        if (is_same && !(is_database && found.st_size == 0)) continue;
        throw CorruptionError((is_database ? "the SQLite file " : "the SQLite file's companion ") + file.path +
                              " was " + (is_same ? "emptied" : "moved, replaced or deleted") +
                              " while it was open; nothing was changed. Let every program close " +
                              files_.front().path + ", put back what was taken away, or a backup, and open it again");
    }
}

}  // namespace varve::sqlite
