#include "faulty_vfs.h"
#include "scratch_file.h"

#include <fstream>

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace varve::sqlite {
namespace {

store::Write deposit(std::int64_t version) {
    return {account("alice", version), store::Put{{{"cents", version}}}, !store::item_exists()};
}

Failure failure_of(const store::WriteAnswer& answer) {
    const auto* failure = std::get_if<Failure>(&answer);
    if (failure != nullptr) return *failure;
    ADD_FAILURE() << "no failure";
    return {};
}

TEST(Failures, a_lock_held_too_long_is_busy_and_certain) {
    const ScratchFile file;
    Options options = file.options();
    options.busy_timeout = std::chrono::milliseconds{20};
    const auto store = sqlite::open(options);
    store->ensure_table(accounts);
    sqlite3* holder = nullptr;
    ASSERT_EQ(sqlite3_open(file.path().c_str(), &holder), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    const Failure failure = failure_of(write_one(*store, deposit(1)));
    EXPECT_EQ(failure.kind, ErrorKind::busy);
    EXPECT_FALSE(failure.in_doubt);
    EXPECT_NE(failure.message.find(file.path()), std::string::npos) << failure.message;
    EXPECT_EQ(read_one(*store, account("alice", 1)), std::nullopt) << "readers do not wait for writers";
    sqlite3_close(holder);
    EXPECT_TRUE(is_applied(write_one(*store, deposit(1))));
}

TEST(Failures, a_full_disk_is_storage_full_and_certain_and_passes) {
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, deposit(1))));
    vfs.disk_full = true;
    const Failure failure = failure_of(write_one(*store, deposit(2)));
    EXPECT_EQ(failure.kind, ErrorKind::storage_full);
    EXPECT_FALSE(failure.in_doubt);
    EXPECT_EQ(read_one(*store, account("alice", 2)), std::nullopt);
    vfs.disk_full = false;
    EXPECT_TRUE(is_applied(write_one(*store, deposit(2))));
    EXPECT_EQ(store->changes("accounts", 0, 10).size(), 2U);
}

TEST(Failures, a_file_at_its_size_limit_is_storage_full) {
    const ScratchFile file;
    (void)sqlite::open(file.options());
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{.rlim_cur = 200'000, .rlim_max = 200'000};
        setrlimit(RLIMIT_FSIZE, &limit);
        const auto store = sqlite::open(file.options());
        store->ensure_table(accounts);
        for (std::int64_t version = 1; version < 100; ++version) {
            const auto answer =
                write_one(*store, {account("alice", version), store::Put{{{"text", std::string(10'000, 'x')}}}});
            if (const auto* failure = std::get_if<Failure>(&answer)) {
                _exit(failure->kind == ErrorKind::storage_full && !failure->in_doubt ? 0 : 2);
            }
        }
        _exit(1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Failures, a_commit_that_the_disk_did_not_confirm_is_in_doubt) {
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    vfs.sync_fails = true;
    const Failure failure = failure_of(write_one(*store, deposit(1)));
    EXPECT_TRUE(failure.in_doubt);
    const std::vector<store::Write> batch{deposit(2), deposit(3)};
    const auto atomic = store->write_atomically(batch);
    ASSERT_TRUE(std::holds_alternative<Failure>(atomic));
    EXPECT_TRUE(std::get<Failure>(atomic).in_doubt);
    vfs.sync_fails = false;
    EXPECT_TRUE(is_applied(write_one(*store, deposit(4))));
}

TEST(Failures, a_disk_that_cannot_be_read_is_unavailable) {
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, deposit(1))));
    ASSERT_TRUE(read_one(*store, account("alice", 1)).has_value());
    ASSERT_TRUE(is_applied(write_one(*store, deposit(2))));
    vfs.read_fails = true;
    EXPECT_THROW((void)read_one(*store, account("alice", 1)), UnavailableError);
    vfs.read_fails = false;
    EXPECT_TRUE(read_one(*store, account("alice", 1)).has_value());
}

TEST(Failures, a_file_without_write_permission_is_read_only) {
    const ScratchFile file;
    sqlite::open(file.options())->ensure_table(accounts);
    ASSERT_EQ(chmod(file.path().c_str(), 0444), 0);
    ASSERT_EQ(chmod(file.directory().c_str(), 0555), 0);
    const pid_t child = fork();
    if (child == 0) {
        // Permissions mean nothing to root.
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        for (const std::string& path : {file.path(), file.directory() + "/new.db"}) {
            try {
                (void)sqlite::open({.path = path});
                _exit(3);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::read_only || error.retryable()) _exit(4);
                if (std::string{error.what()}.find(path) == std::string::npos) _exit(5);
            }
        }
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    chmod(file.directory().c_str(), 0755);
}

TEST(Failures, overwritten_pages_are_corruption) {
    const ScratchFile file;
    {
        const auto store = sqlite::open(file.options());
        store->ensure_table(accounts);
        std::vector<store::Write> writes;
        for (std::int64_t version = 1; version <= 1000; ++version) writes.push_back(deposit(version));
        for (const auto& answer : store->write(writes)) ASSERT_TRUE(is_applied(answer));
    }
    // Behind the first page, which tells that it is a database, and the one that lists the tables.
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file.path()));
    std::fstream out{file.path(), std::ios::in | std::ios::out | std::ios::binary};
    out.seekp(3 * 4096);
    out << std::string(static_cast<std::size_t>(size - 3 * 4096), '\xee');
    out.close();
    const auto store = sqlite::open(file.options());
    store::Query query{.table = "accounts", .partition = "alice"};
    EXPECT_THROW((void)store->query(query), CorruptionError);
    const Failure failure = failure_of(write_one(*store, deposit(500)));
    EXPECT_EQ(failure.kind, ErrorKind::corruption);
    EXPECT_FALSE(failure.in_doubt);
}

TEST(Failures, a_file_that_was_moved_away_gets_no_more_writes) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    std::filesystem::rename(file.path(), file.directory() + "/elsewhere.db");
    const Failure failure = failure_of(write_one(*store, deposit(1)));
    EXPECT_EQ(failure.kind, ErrorKind::unavailable);
    EXPECT_FALSE(failure.in_doubt);
    EXPECT_NE(failure.message.find("moved"), std::string::npos);
}

TEST(Failures, a_write_that_can_never_work_does_not_reach_the_group) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    const store::Item large{{"text", std::string(store->capabilities().item_bytes_max, 'x')}};
    const std::vector<store::Write> writes{deposit(1), {account("alice", 2), store::Put{large}}};
    EXPECT_THROW((void)store->write(writes), InvalidError);
    EXPECT_EQ(read_one(*store, account("alice", 1)), std::nullopt);
}

}  // namespace
}  // namespace varve::sqlite
