#include "scratch_file.h"

#include <varve/store/item_store.h>
#include <varve/store/open.h>

#include <fstream>
#include <set>

#include <sqlite3.h>

namespace varve::sqlite {
namespace {

template <class Expected = ConfigError>
std::string error_of(const std::string& url) {
    try {
        (void)varve::open(url);
    } catch (const Expected& error) {
        return error.what();
    }
    return "no error";
}

void foreign_exec(const std::string& path, const std::string& sql) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    char* error = nullptr;
    ASSERT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(connection);
}

std::string content(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(OpenSqlite, linking_the_adapter_makes_the_scheme_known) {
    const ScratchFile file;
    const auto store = varve::open(file.url() + "?synchronous=normal&busy_timeout_ms=100");
    store->ensure_table(accounts);
    EXPECT_TRUE(is_applied(write_one(*store, {account("alice", 1), store::Put{{}}})));
}

TEST(OpenSqlite, options_are_checked) {
    EXPECT_NE(error_of("sqlite:x.db?synchronous=ful").find("did you mean 'full'"), std::string::npos);
    EXPECT_NE(error_of("sqlite:x.db?busy_timeout_ms=soon").find("busy_timeout_ms"), std::string::npos);
    EXPECT_NE(error_of("sqlite:x.db?busy_timeout_ms=-1").find("busy_timeout_ms"), std::string::npos);
    EXPECT_NE(error_of("sqlite:x.db?journal=off").find("known: synchronous"), std::string::npos);
    EXPECT_NE(error_of("sqlite:").find("names a file"), std::string::npos);
}

TEST(OpenSqlite, memory_is_another_adapter) {
    EXPECT_NE(error_of("sqlite::memory:").find("use memory: instead"), std::string::npos);
}

TEST(OpenSqlite, a_path_that_can_never_work_is_named) {
    const ScratchFile file;
    EXPECT_NE(error_of("sqlite:" + file.directory()).find("is a directory"), std::string::npos);
    EXPECT_NE(error_of("sqlite:" + file.directory() + "/missing/store.db").find("no directory"), std::string::npos);
}

TEST(OpenSqlite, a_file_of_another_program_is_refused_and_left_as_it_is) {
    const ScratchFile file;
    foreign_exec(file.path(), "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    const std::string before = content(file.path());
    EXPECT_NE(error_of(file.url()).find("belongs to another program"), std::string::npos);
    EXPECT_EQ(content(file.path()), before);
}

TEST(OpenSqlite, a_newer_format_is_refused) {
    const ScratchFile file;
    (void)sqlite::open(file.options());
    foreign_exec(file.path(), "PRAGMA user_version = 99");
    EXPECT_NE(error_of(file.url()).find("has format 99"), std::string::npos);
}

TEST(OpenSqlite, a_file_that_is_no_database_is_corruption) {
    const ScratchFile file;
    std::ofstream{file.path()} << std::string(10'000, 'x');
    EXPECT_NE(error_of<CorruptionError>(file.url()).find(file.path()), std::string::npos);
}

TEST(OpenSqlite, a_file_that_was_emptied_does_not_become_a_new_store) {
    const ScratchFile file;
    sqlite::open(file.options())->ensure_table(accounts);
    std::filesystem::resize_file(file.path(), 0);
    EXPECT_NE(error_of<CorruptionError>(file.url()).find("is empty"), std::string::npos);
    EXPECT_EQ(std::filesystem::file_size(file.path()), 0U);
}

TEST(OpenSqlite, a_log_without_its_file_is_not_thrown_away) {
    const ScratchFile file;
    const std::string log = file.path() + "-wal";
    std::string kept;
    {
        const auto store = sqlite::open(file.options());
        store->ensure_table(accounts);
        kept = content(log);
        std::filesystem::remove(file.path());
    }
    std::ofstream{log, std::ios::binary} << kept;
    EXPECT_NE(error_of<CorruptionError>(file.url()).find(log), std::string::npos);
    EXPECT_EQ(content(log), kept);
}

TEST(OpenSqlite, a_file_is_created_as_a_whole_and_with_the_permissions_that_were_asked_for) {
    const ScratchFile file;
    const auto store = varve::open(file.url() + "?mode=0640");
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{file.directory()}) {
        names.insert(entry.path().filename());
        EXPECT_EQ(entry.status().permissions(), std::filesystem::perms{0640}) << entry.path();
    }
    EXPECT_EQ(names, (std::set<std::string>{"store.db", "store.db-shm", "store.db-wal"}));
    for (const char* mode : {"0400", "644x", "0755", "-1", ""}) {
        EXPECT_NE(error_of(file.url() + "?mode=" + mode).find("mode"), std::string::npos) << mode;
    }
}

TEST(OpenSqlite, a_path_through_a_symbolic_link_and_back_is_what_the_system_makes_of_it) {
    const ScratchFile file;
    const std::filesystem::path folder{file.directory()};
    std::filesystem::create_directories(folder / "far" / "away");
    std::filesystem::create_directory_symlink(folder / "far" / "away", folder / "link");
    (void)varve::open("sqlite:" + (folder / "link" / ".." / "store.db").string());
    EXPECT_TRUE(std::filesystem::exists(folder / "far" / "store.db"));
    EXPECT_FALSE(std::filesystem::exists(folder / "store.db"));
}

TEST(OpenSqlite, a_table_of_another_shape_is_refused_naming_both) {
    const ScratchFile file;
    sqlite::open(file.options())->ensure_table(accounts);
    store::TableSchema other = accounts;
    other.sort_attribute = "number";
    other.sort = store::SortType::text;
    try {
        sqlite::open(file.options())->ensure_table(other);
        FAIL();
    } catch (const ConfigError& error) {
        EXPECT_NE(std::string{error.what()}.find("(id, version integer), not (id, number text)"), std::string::npos)
            << error.what();
    }
}

TEST(OpenSqlite, the_store_keeps_to_its_file_when_the_process_changes_directory) {
    const ScratchFile file;
    const auto home = std::filesystem::current_path();
    std::filesystem::current_path(file.directory());
    const auto store = varve::open("sqlite:store.db");
    std::filesystem::current_path(home);
    store->ensure_table(accounts);
    EXPECT_TRUE(is_applied(write_one(*store, {account("alice", 1), store::Put{{}}})));
    EXPECT_EQ(read_one(*store, account("alice", 1)), store::Item{});
    EXPECT_TRUE(std::filesystem::exists(file.path()));
}

}  // namespace
}  // namespace varve::sqlite
