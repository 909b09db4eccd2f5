#pragma once

#include "trace.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace varve::power_cut {

/// A disk with one directory that does what a trace says, and can show what it would be like after a power cut now:
/// what was flushed is there; of the rest any part may be, a write also in halves. Entries of the directory are as lost
/// as contents until the directory is flushed, but never out of order, as on a file system with a journal.
///
/// Threads: one.
class Disk {
  public:
    /// With `flushes` false it takes a flush for done and does nothing, as the cheapest of disks.
    explicit Disk(bool flushes) : flushes_(flushes) {}

    /// `content` must live as long as the disk.
    void apply(const Request& request, std::span<const std::byte> content);

    /// Puts what one power cut could leave into the empty directory.
    void cut(const std::filesystem::path& directory, std::mt19937_64& random) const;

  private:
    struct Change {
        bool truncates;
        std::uint64_t offset;
        std::span<const std::byte> content;
    };
    struct File {
        std::vector<std::byte> flushed;
        std::vector<Change> pending;
        bool is_kept = false;  ///< outside of the game
    };
    struct Entry {
        std::string gone;  ///< a name that is removed
        std::string name;  ///< one that is put
        std::shared_ptr<File> file;
    };

    static void change(std::vector<std::byte>& content, const Change& change);
    static void change(std::map<std::string, std::shared_ptr<File>>& names, const Entry& entry);

    const bool flushes_;
    std::map<std::uint64_t, std::shared_ptr<File>> files_;  // by inode; one may be used again
    std::map<std::string, std::shared_ptr<File>> names_;    // flushed
    std::vector<Entry> pending_;
};

}  // namespace varve::power_cut
