#include "faulty_vfs.h"
#include "scratch_file.h"
#include "support/account.h"

#include <varve/store/item_store.h>

#include <cerrno>
#include <fstream>
#include <functional>

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

TEST(Failures, a_command_waits_for_a_lock_no_longer_than_was_asked_for) {
    const ScratchFile file;
    Options options = file.options();
    options.busy_timeout = std::chrono::milliseconds{50};
    Application bank{sqlite::open(options),
                     {.transactions = {.answer_time_max = std::chrono::minutes{1}}, .sweep = false}};
    ASSERT_TRUE(bank.execute<account::Account>("alice", account::Deposit{1}));
    sqlite3* holder = nullptr;
    ASSERT_EQ(sqlite3_open(file.path().c_str(), &holder), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto began = std::chrono::steady_clock::now();
    const auto is_busy = [](const Error& error) { return error.kind() == ErrorKind::busy && !error.in_doubt(); };
    const auto expect_busy = [&](const auto& call) {
        try {
            call();
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_TRUE(is_busy(error)) << error.what();
            EXPECT_NE(std::string{error.what()}.find("for more than 50 ms"), std::string::npos) << error.what();
        }
    };
    expect_busy([&] { (void)bank.execute<account::Account>("alice", account::Deposit{1}); });
    expect_busy([&] {
        (void)bank.transact([](Transaction& tx) {
            tx.execute<account::Account>("alice", account::Withdraw{1});
            tx.execute<account::Account>("bob", account::Deposit{1});
        });
    });
    // Repeating it for as long as a silent store is asked again would take a minute.
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
    sqlite3_close(holder);
    EXPECT_TRUE(bank.execute<account::Account>("alice", account::Deposit{1}));
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

TEST(Failures, a_commit_that_the_disk_did_not_confirm_is_in_doubt_whatever_the_reason) {
    for (const int reason : {EIO, ENOSPC, EROFS}) {
        const ScratchFile file;
        FaultyVfs vfs;
        const auto store = sqlite::open(file.options());
        store->ensure_table(accounts);
        vfs.sync_error = reason;
        const Failure failure = failure_of(write_one(*store, deposit(1)));
        EXPECT_TRUE(failure.in_doubt) << failure.message;
        EXPECT_EQ(failure.kind, ErrorKind::in_doubt);
        EXPECT_NE(failure.message.find(file.path()), std::string::npos) << failure.message;
        vfs.sync_error = 0;
        EXPECT_TRUE(is_applied(write_one(*store, deposit(4))));
        vfs.sync_error = reason;
        const std::vector<store::Write> batch{deposit(2), deposit(3)};
        const auto atomic = store->write_atomically(batch);
        ASSERT_TRUE(std::holds_alternative<Failure>(atomic));
        EXPECT_TRUE(std::get<Failure>(atomic).in_doubt);
        vfs.sync_error = 0;
    }
}

TEST(Failures, a_connection_that_flushed_in_vain_is_trusted_no_more) {
    const ScratchFile file;
    FaultyVfs vfs;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    ASSERT_TRUE(is_applied(write_one(*store, deposit(1))));
    vfs.sync_error = EIO;
    ASSERT_TRUE(failure_of(write_one(*store, deposit(2))).in_doubt);
    // The next one begins with another connection and a flush of what is there: that it fails is certain.
    const int opened = vfs.log_opens;
    const Failure failure = failure_of(write_one(*store, deposit(3)));
    EXPECT_GT(vfs.log_opens, opened);
    EXPECT_EQ(failure.kind, ErrorKind::unavailable) << failure.message;
    EXPECT_FALSE(failure.in_doubt);
    EXPECT_EQ(read_one(*store, account("alice", 3)), std::nullopt);
    vfs.sync_error = 0;
    EXPECT_TRUE(is_applied(write_one(*store, deposit(4))));
    EXPECT_TRUE(read_one(*store, account("alice", 1)).has_value());
}

TEST(Failures, a_disk_that_cannot_be_read_is_unavailable_at_each_read) {
    const ScratchFile file;
    sqlite::open(file.options())->ensure_table(accounts);
    const std::vector<std::pair<const char*, std::function<void(store::ItemStore&)>>> calls{
        {"read", [](auto& store) { (void)read_one(store, account("alice", 1)); }},
        {"query", [](auto& store) { (void)store.query({.table = "accounts", .partition = "alice"}); }},
        {"scan", [](auto& store) { (void)store.scan({.table = "accounts"}); }},
        {"changes", [](auto& store) { (void)store.changes("accounts", 0, 10); }},
        {"ensure_table", [](auto& store) { store.ensure_table({.name = "other", .partition_attribute = "id"}); }},
        {"write",
         [](auto& store) {
             const auto answer = write_one(store, deposit(2));
             if (const auto* failure = std::get_if<Failure>(&answer)) raise(*failure);
         }},
    };
    for (const auto& [name, call] : calls) {
        for (int reads = 0;; ++reads) {
            ASSERT_LT(reads, 200) << name;
            const auto other = sqlite::open(file.options());  // so that there is a log to be read
            (void)write_one(*other, deposit(1));
            FaultyVfs vfs;
            bool failed = false;
            try {
                vfs.reads_to_come = reads;
                const auto store = sqlite::open(file.options());
                call(*store);
            } catch (const Error& error) {
                failed = true;
                EXPECT_EQ(error.kind(), ErrorKind::unavailable) << name << " after " << reads << ": " << error.what();
            }
            if (!failed) break;
        }
    }
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

/// What a write to a store meets after `damage` was done to the file at the path.
Failure failure_after(const std::function<void(const std::string& path)>& damage) {
    const ScratchFile file;
    const auto store = sqlite::open(file.options());
    store->ensure_table(accounts);
    EXPECT_TRUE(is_applied(write_one(*store, deposit(1))));
    damage(file.path());
    return failure_of(write_one(*store, deposit(2)));
}

TEST(Failures, a_file_that_is_no_longer_there_under_a_running_program_gets_no_more_writes) {
    const auto rename = [](const std::string& path) { std::filesystem::rename(path, path + ".elsewhere"); };
    const auto replace = [](const std::string& path) {
        std::filesystem::copy_file(path, path + ".copy");
        std::filesystem::rename(path + ".copy", path);
    };
    const auto empty = [](const std::string& path) { std::filesystem::resize_file(path, 0); };
    struct Case {
        std::function<void(const std::string&)> damage;
        std::string companion;
        std::string what;
    };
    std::vector<Case> cases{{empty, "", "emptied"}};
    for (const char* companion : {"", "-wal", "-shm"}) {
        for (const std::function<void(const std::string&)>& damage :
             {std::function<void(const std::string&)>{rename}, std::function<void(const std::string&)>{replace},
              std::function<void(const std::string&)>{
                  [](const std::string& path) { std::filesystem::remove(path); }}}) {
            cases.push_back({damage, companion, companion + std::string{" was moved, replaced or deleted"}});
        }
    }
    for (const Case& one : cases) {
        const Failure failure = failure_after([&](const std::string& path) { one.damage(path + one.companion); });
        EXPECT_EQ(failure.kind, ErrorKind::corruption) << failure.message;
        EXPECT_FALSE(failure.in_doubt);
        EXPECT_FALSE(Error{failure}.retryable());
        EXPECT_NE(failure.message.find(one.what), std::string::npos) << failure.message;
    }
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
