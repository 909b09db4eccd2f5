#pragma once

#include <cstdint>

namespace varve::power_cut {

/// What a process asked of its file system, in order: the recorder writes it, the simulated disk reads it. After each
/// header come `bytes` bytes.
struct Request {
    enum class Kind : std::uint32_t {
        create,    ///< `file` under the name that follows
        link,      ///< `file` also has the name that follows
        unlink,    ///< the name that follows is gone
        rename,    ///< `file`'s old name, NUL, its new one
        write,     ///< what follows, at `offset`
        truncate,  ///< to `offset` bytes
        flush,     ///< of `file`; 0: of the directory
    };
    Kind kind;
    std::uint32_t padding = 0;
    std::uint64_t file;  ///< its inode
    std::uint64_t offset;
    std::uint64_t bytes;
};

/// Environment variables that tell the recorder the directory to watch and the file to write to.
inline constexpr const char* watched_variable = "VARVE_POWER_CUT_WATCHED";
inline constexpr const char* trace_variable = "VARVE_POWER_CUT_TRACE";

/// Written by the worker, a line for each command that was acknowledged. The simulated disk never loses it.
inline constexpr const char* acknowledgements = "acknowledged";

}  // namespace varve::power_cut
