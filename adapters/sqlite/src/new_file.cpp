#include "new_file.h"

#include <varve/core/error.h>
#include <varve/core/runtime.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

[[noreturn]] void raise_system(const std::string& what, int error) {
    const bool full = error == ENOSPC || error == EDQUOT;
    const bool unwritable = error == EACCES || error == EPERM || error == EROFS;
    raise({full         ? ErrorKind::storage_full
           : unwritable ? ErrorKind::read_only
                        : ErrorKind::unavailable,
           false, what + ": " + std::strerror(error)});
}

struct Descriptor {
    const int number;
    ~Descriptor() {
        if (number >= 0) close(number);
    }
};

}  // namespace

NewFile::NewFile(std::string place, unsigned mode)
    : place_(std::move(place)), path_(place_ + ".new-" + std::to_string(Random::system().next())) {
    const Descriptor file{::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
    if (file.number >= 0) return;
    raise_system("the SQLite file " + place_ + " cannot be created; make its directory writable", errno);
}

NewFile::~NewFile() {
    unlink(path_.c_str());
}

bool NewFile::put_in_place() {
    if (link(path_.c_str(), place_.c_str()) != 0) {
        if (errno == EEXIST) return false;
        // A file system without hard links.
        if (rename(path_.c_str(), place_.c_str()) != 0) {
            raise_system("the SQLite file " + place_ + " cannot be put in its place", errno);
        }
    }
    flush_directory_of(place_);
    return true;
}

void flush_directory_of(const std::string& path) {
    const std::string directory = std::filesystem::path{path}.parent_path().string();
    const Descriptor opened{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (opened.number >= 0 && (fsync(opened.number) == 0 || errno == EINVAL)) return;  // EINVAL: none can be flushed
    raise_system("the directory " + directory + " of the SQLite file cannot be flushed to the disk", errno);
}

}  // namespace varve::sqlite
