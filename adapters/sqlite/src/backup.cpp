#include "connection.h"
#include "new_file.h"
#include "sqlite_store.h"

#include <varve/store/item_store.h>

#include <filesystem>

#include <sqlite3.h>
#include <sys/stat.h>

namespace varve::sqlite {
namespace {

/// Few enough for a bar that moves, enough for their number not to matter.
constexpr int pages_at_once = 1024;

struct Finish {
    void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

void copy(Connection& from, Connection& to, const std::function<void(const BackupProgress&)>& progress) {
    // Within one transaction it is all of one state, and begins anew for nobody's commit.
    from.execute("BEGIN");
    from.prepare("SELECT count(*) FROM varve_tables").run();
    const std::uint64_t page_bytes = [&] {
        Statement row = from.prepare("PRAGMA page_size");
        return row.step() ? static_cast<std::uint64_t>(row.integer(0)) : 0;
    }();
    const std::unique_ptr<sqlite3_backup, Finish> backup{
        sqlite3_backup_init(to.handle(), "main", from.handle(), "main")};
    if (!backup) to.raise(sqlite3_extended_errcode(to.handle()));
    for (;;) {
        const int code = [&] {
            const Waiting::Call call = from.call();
            return sqlite3_backup_step(backup.get(), pages_at_once);
        }();
        if (code != SQLITE_OK && code != SQLITE_DONE) to.raise(code);
        const auto total = static_cast<std::uint64_t>(sqlite3_backup_pagecount(backup.get()));
        const auto left = static_cast<std::uint64_t>(sqlite3_backup_remaining(backup.get()));
        if (progress) progress({.bytes = (total - left) * page_bytes, .bytes_total = total * page_bytes});
        if (code == SQLITE_DONE) break;
    }
    from.rollback();
}

}  // namespace

void backup(const store::ItemStore& store, const std::string& to,
            const std::function<void(const BackupProgress&)>& progress) {
    const auto* const source = dynamic_cast<const SqliteStore*>(&store);
    if (source == nullptr) throw InvalidError("a backup by SQLite was asked of another kind of store");
    const auto refuse = [&] {
        throw ConfigError("there is a file " + to + " already; a backup replaces none, name another or remove it");
    };
    const std::filesystem::path place = std::filesystem::absolute(to);
    if (std::filesystem::exists(std::filesystem::symlink_status(place))) refuse();
    if (!std::filesystem::is_directory(place.parent_path())) {
        throw ConfigError("there is no directory " + place.parent_path().string() + " for the backup " + to +
                          "; create it");
    }
    struct stat original {};
    const bool is_there = stat(source->options().path.c_str(), &original) == 0;
    NewFile made{place.string(), is_there ? original.st_mode & 0777U : source->options().mode};
    Options target = source->options();
    target.path = made.path();
    {
        Connection from{source->options(), Connection::Mode::read};
        Connection copied{target, Connection::Mode::write};
        copy(from, copied, progress);
    }
    if (!made.put_in_place()) refuse();
}

}  // namespace varve::sqlite
