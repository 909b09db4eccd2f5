// Preloaded into a process (LD_PRELOAD), passes its file system calls on and records those that change one directory.
// An index of a log (-shm) is no part of it: it is shared memory and never meant to survive.

#include "../trace.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using varve::power_cut::Request;

template <class Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

class Recorder {
  public:
    // Never destroyed: files are closed until the very end.
    static Recorder& instance() {
        static Recorder& recorder = *new Recorder;
        return recorder;
    }

    /// The name of a file in the watched directory; empty: of another, or an index. The directory itself is "/".
    std::string watched(const char* path) const {
        if (folder_.empty() || path == nullptr) return {};
        const std::string_view text{path};
        if (text == folder_) return "/";
        if (!text.starts_with(folder_ + "/") || text.ends_with("-shm")) return {};
        return std::string{text.substr(folder_.size() + 1)};
    }

    /// Runs a call and records what it did, as one step.
    template <class Call>
    auto step(Call call) {
        const std::lock_guard lock{mutex};
        return call();
    }

    void record(Request request, std::string_view content = {}) {
        request.bytes = content.size();
        fwrite(&request, sizeof request, 1, trace_);
        fwrite(content.data(), 1, content.size(), trace_);
        fflush(trace_);
    }

    void opened(int file, const std::string& name, bool is_new) {
        struct stat found {};
        if (name == "/") {
            files_[file] = 0;
        } else if (fstat(file, &found) == 0) {
            files_[file] = found.st_ino;
            if (is_new) record({.kind = Request::Kind::create, .file = found.st_ino, .offset = 0, .bytes = 0}, name);
        }
    }
    void closed(int file) { files_.erase(file); }
    /// nullptr: not in the watched directory.
    const std::uint64_t* inode(int file) const {
        const auto found = files_.find(file);
        return found == files_.end() ? nullptr : &found->second;
    }

    std::mutex mutex;

  private:
    Recorder() {
        const char* folder = std::getenv(varve::power_cut::watched_variable);
        const char* trace = std::getenv(varve::power_cut::trace_variable);
        if (folder == nullptr || trace == nullptr) return;
        trace_ = fopen(trace, "wb");
        if (trace_ == nullptr) std::abort();
        folder_ = folder;
    }

    std::string folder_;
    std::FILE* trace_ = nullptr;
    // Guarded by mutex:
    std::unordered_map<int, std::uint64_t> files_;
};

template <class Open>
int open_file(const char* path, int flags, Open really_open) {
    Recorder& recorder = Recorder::instance();
    const std::string name = recorder.watched(path);
    if (name.empty()) return really_open();
    return recorder.step([&] {
        struct stat found {};
        const bool is_new = (flags & O_CREAT) != 0 && stat(path, &found) != 0;
        const int file = really_open();
        if (file >= 0) recorder.opened(file, name, is_new);
        return file;
    });
}

template <class Write>
ssize_t write_file(int file, const void* data, std::int64_t offset, Write really_write) {
    Recorder& recorder = Recorder::instance();
    return recorder.step([&] {
        const std::uint64_t* const inode = recorder.inode(file);
        struct stat found {};
        // Without an offset it is the file of acknowledgements, which is only appended to.
        if (inode != nullptr && offset < 0 && fstat(file, &found) == 0) offset = found.st_size;
        const ssize_t written = really_write();
        if (inode != nullptr && written > 0) {
            recorder.record({.kind = Request::Kind::write,
                             .file = *inode,
                             .offset = static_cast<std::uint64_t>(offset),
                             .bytes = 0},
                            {static_cast<const char*>(data), static_cast<std::size_t>(written)});
        }
        return written;
    });
}

template <class Call>
int file_call(int file, Request::Kind kind, std::uint64_t offset, Call call) {
    Recorder& recorder = Recorder::instance();
    return recorder.step([&] {
        const std::uint64_t* const inode = recorder.inode(file);
        const int result = call();
        if (inode != nullptr && result == 0) {
            recorder.record({.kind = kind, .file = *inode, .offset = offset, .bytes = 0});
        }
        return result;
    });
}

/// Of the file at `path`; the directory's entry `content` changes.
template <class Call>
int name_call(const char* path, Request::Kind kind, const std::string& content, Call call) {
    Recorder& recorder = Recorder::instance();
    if (recorder.watched(path).empty() || content.empty()) return call();
    return recorder.step([&] {
        struct stat found {};
        stat(path, &found);
        const int result = call();
        if (result == 0) recorder.record({.kind = kind, .file = found.st_ino, .offset = 0, .bytes = 0}, content);
        return result;
    });
}

mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    static auto* const real = next<int(const char*, int, ...)>("open");
    return open_file(path, flags, [&] { return real(path, flags, mode); });
}

int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    static auto* const real = next<int(const char*, int, ...)>("open64");
    return open_file(path, flags, [&] { return real(path, flags, mode); });
}

int close(int file) {
    static auto* const real = next<int(int)>("close");
    Recorder& recorder = Recorder::instance();
    return recorder.step([&] {
        recorder.closed(file);
        return real(file);
    });
}

ssize_t write(int file, const void* data, std::size_t size) {
    static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
    return write_file(file, data, -1, [&] { return real(file, data, size); });
}

ssize_t pwrite(int file, const void* data, std::size_t size, off_t offset) {
    static auto* const real = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
    return write_file(file, data, offset, [&] { return real(file, data, size, offset); });
}

ssize_t pwrite64(int file, const void* data, std::size_t size, off64_t offset) {
    static auto* const real = next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
    return write_file(file, data, offset, [&] { return real(file, data, size, offset); });
}

int ftruncate(int file, off_t size) noexcept {
    static auto* const real = next<int(int, off_t)>("ftruncate");
    return file_call(file, Request::Kind::truncate, static_cast<std::uint64_t>(size), [&] { return real(file, size); });
}

int ftruncate64(int file, off64_t size) noexcept {
    static auto* const real = next<int(int, off64_t)>("ftruncate64");
    return file_call(file, Request::Kind::truncate, static_cast<std::uint64_t>(size), [&] { return real(file, size); });
}

int fsync(int file) {
    static auto* const real = next<int(int)>("fsync");
    return file_call(file, Request::Kind::flush, 0, [&] { return real(file); });
}

int fdatasync(int file) {
    static auto* const real = next<int(int)>("fdatasync");
    return file_call(file, Request::Kind::flush, 0, [&] { return real(file); });
}

int unlink(const char* path) noexcept {
    static auto* const real = next<int(const char*)>("unlink");
    return name_call(path, Request::Kind::unlink, Recorder::instance().watched(path), [&] { return real(path); });
}

int link(const char* from, const char* to) noexcept {
    static auto* const real = next<int(const char*, const char*)>("link");
    return name_call(from, Request::Kind::link, Recorder::instance().watched(to), [&] { return real(from, to); });
}

int rename(const char* from, const char* to) noexcept {
    static auto* const real = next<int(const char*, const char*)>("rename");
    const Recorder& recorder = Recorder::instance();
    const std::string names = recorder.watched(from) + '\0' + recorder.watched(to);
    return name_call(from, Request::Kind::rename, names, [&] { return real(from, to); });
}

}  // extern "C"
