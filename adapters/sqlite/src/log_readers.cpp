#include "log_readers.h"

#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

// SQLite's locks of readers are on these bytes of the log's index; see "WAL-index locks" in its documentation.
constexpr std::int64_t first_mark = 123;
constexpr std::int64_t last_mark = 127;

std::string name_of(pid_t process) {
    std::string name;
    std::getline(std::ifstream{"/proc/" + std::to_string(process) + "/comm"}, name);
    return "process " + std::to_string(process) + (name.empty() ? "" : " (" + name + ")");
}

/// The processes with a lock on a reader's mark. A line of /proc/locks reads
///     12: POSIX  ADVISORY  READ 4711 08:01:1234 124 124
/// which is kind, mode, access, process, device and inode, first byte, last byte.
std::set<pid_t> readers(ino_t index) {
    std::set<pid_t> found;
    std::ifstream locks{"/proc/locks"};
    for (std::string line; std::getline(locks, line);) {
        std::istringstream words{line};
        std::string number, kind, mode, access, file;
        pid_t process = 0;
        std::int64_t first = 0;
        if (!(words >> number >> kind >> mode >> access >> process >> file >> first)) continue;
        const bool is_ours = file.substr(file.rfind(':') + 1) == std::to_string(index);
        if (is_ours && access == "READ" && first >= first_mark && first <= last_mark) found.insert(process);
    }
    return found;
}

}  // namespace

std::string readers_of_log(const std::string& path) {
    struct stat index {};
    if (stat((path + "-shm").c_str(), &index) != 0) return "unknown";
    std::set<pid_t> processes = readers(index.st_ino);
    // This one's reads are short, so it is named only where there is no other.
    if (processes.size() > 1) processes.erase(getpid());
    std::string names;
    for (const pid_t process : processes) names += (names.empty() ? "" : ", ") + name_of(process);
    return names.empty() ? "unknown" : names;
}

}  // namespace varve::sqlite
