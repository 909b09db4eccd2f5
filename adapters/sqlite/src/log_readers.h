#pragma once

#include <string>

namespace varve::sqlite {

/// Who reads the database at `path` through its log just now, for a message: "process 4711 (sqlite3)". Reads the
/// system's list of locks, for to open the index would be enough to lose this process's own locks on it.
std::string readers_of_log(const std::string& path);

}  // namespace varve::sqlite
