#pragma once

#include <string>

namespace varve::sqlite {

/// A file that is made under a name of its own beside its place, and put there as a whole: so nobody ever meets one
/// that is being made, and an empty one is always one that was emptied.
///
/// Errors: of kind storage_full, read_only or unavailable.
class NewFile {
  public:
    /// Creates it, empty, with these permissions less the process's umask.
    NewFile(std::string place, unsigned mode);
    /// Removes it, unless it was put in its place.
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    const std::string& path() const { return path_; }
    /// False: there is one already, which stays.
    [[nodiscard]] bool put_in_place();

  private:
    const std::string place_;
    const std::string path_;
};

/// Makes sure that the files beside `path` are found under their names after a power cut. SQLite does it for its log,
/// but takes a failure for a success.
void flush_directory_of(const std::string& path);

}  // namespace varve::sqlite
