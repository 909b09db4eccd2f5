#pragma once

#include <array>
#include <string>

#include <sys/types.h>

namespace varve::sqlite {

/// The three files that a store has open under its path: the database, its write-ahead log and the log's index. SQLite
/// would go on writing to one that nobody can find any more, or make a new one beside those of others.
///
/// Threads: immutable.
class StoreFiles {
  public:
    /// Those that lie there now. A connection must have opened them, and stay open.
    explicit StoreFiles(std::string path);

    /// Throws CorruptionError that says which of them was deleted, replaced or emptied since.
    void check() const;

  private:
    struct File {
        std::string path;
        dev_t device = 0;
        ino_t inode = 0;
    };
    std::array<File, 3> files_;
};

}  // namespace varve::sqlite
